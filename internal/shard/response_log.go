package shard

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// maxLogged is the size in bytes at which the log of a runner is full, after about 500,000 responses.
const maxLogged = 2 << 20

// A ResponseLog lists the responses of a runner in the order of their ends. Reports derive the effect of --at and the
// number of open responses from it.
type ResponseLog struct {
	// Data has two numbers for each response, in milliseconds. The first is the time from the end of the previous
	// response (for the first response: from 1970) to the end of this one. The second is the duration of this response,
	// multiplied by stateBase, plus the index of its state.
	Data     []byte `json:"data,omitempty"`
	Unlisted int64  `json:"unlisted,omitempty"` // number of further responses

	last int64 // end of the last response in milliseconds
}

// stateBase exceeds the number of states.
const stateBase = 16

// A LoggedResponse is one response of a log. Times are Unix seconds; From is the intended start of its request.
type LoggedResponse struct {
	State    ledger.ResponseState
	From, To float64
}

func (l *ResponseLog) add(state ledger.ResponseState, endedAt time.Time, duration time.Duration) {
	index := slices.Index(ledger.ResponseStates, state)
	if len(l.Data) >= maxLogged || index < 0 {
		l.Unlisted++
		return
	}
	at := endedAt.UnixMilli()
	l.Data = binary.AppendVarint(l.Data, at-l.last)
	l.Data = binary.AppendUvarint(l.Data, uint64(max(duration.Milliseconds(), 0))*stateBase+uint64(index))
	l.last = at
}

// All yields the responses up to the first unreadable one.
func (l *ResponseLog) All() iter.Seq[LoggedResponse] {
	return func(yield func(LoggedResponse) bool) {
		unread, at := l.Data, int64(0)
		for len(unread) > 0 {
			response, ok := takeResponse(&unread, &at)
			if !ok || !yield(response) {
				return
			}
		}
	}
}

var errLog = errors.New("unreadable log of responses")

// takeResponse removes the first response from data, and advances at to its end. ok is false if it is unreadable.
func takeResponse(data *[]byte, at *int64) (response LoggedResponse, ok bool) {
	delta, n := binary.Varint(*data)
	if n <= 0 || delta > maxNumber || delta < -maxNumber {
		return response, false
	}
	*data = (*data)[n:]
	*at += delta
	number, ok := takeNumber(data, maxNumber)
	if index := number % stateBase; !ok || !areCounts(*at) || index >= uint64(len(ledger.ResponseStates)) {
		return response, false
	}
	response.State = ledger.ResponseStates[number%stateBase]
	response.To = float64(*at) / 1000
	response.From = response.To - float64(number/stateBase)/1000
	return response, true
}

// check returns an error for a log that no runner writes. All responses must start and end between from and to.
func (l *ResponseLog) check(from, to time.Time) error {
	if len(l.Data) > maxLogged+2*binary.MaxVarintLen64 || !areCounts(l.Unlisted) {
		return errLog
	}
	at := int64(0)
	for unread := l.Data; len(unread) > 0; {
		response, ok := takeResponse(&unread, &at)
		if !ok {
			return errLog
		}
		if response.From < float64(from.Unix()) || at > to.UnixMilli() {
			return errOutsideOfRun
		}
	}
	return nil
}
