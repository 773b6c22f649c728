package shard

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// maxLogged is the size of the log of a runner in bytes: about 500,000 responses.
const maxLogged = 2 << 20

// A ResponseLog lists the responses of a runner in the order of their ends. The effect of an action is found in it.
type ResponseLog struct {
	// Data has two numbers for each response, in milliseconds: the time between its end and the previous one (for the
	// first: since 1970), and its duration. The second one is multiplied by stateBase, plus the index of the state.
	Data     []byte `json:"data,omitempty"`
	Unlisted int64  `json:"unlisted,omitempty"`

	last int64 // end of the last one in milliseconds
}

const stateBase = 16

// A LoggedResponse is one response of a log. Times are Unix seconds; From is the intended start of its request.
type LoggedResponse struct {
	State    ledger.ResponseState
	From, To float64
}

// add adds a response with its duration.
func (l *ResponseLog) add(state ledger.ResponseState, ended time.Time, took time.Duration) {
	index := slices.Index(ledger.ResponseStates, state)
	if len(l.Data) >= maxLogged || index < 0 {
		l.Unlisted++
		return
	}
	at := ended.UnixMilli()
	l.Data = binary.AppendVarint(l.Data, at-l.last)
	l.Data = binary.AppendUvarint(l.Data, uint64(max(took.Milliseconds(), 0))*stateBase+uint64(index))
	l.last = at
}

// All yields the responses up to the first that cannot be read.
func (l *ResponseLog) All() iter.Seq[LoggedResponse] {
	return func(yield func(LoggedResponse) bool) {
		rest, at := l.Data, int64(0)
		for len(rest) > 0 {
			one, err := cutResponse(&rest, &at)
			if err != nil || !yield(one) {
				return
			}
		}
	}
}

var errLog = errors.New("its log of responses cannot be read")

// cutResponse removes the first response from data. at is the end of the one before.
func cutResponse(data *[]byte, at *int64) (a LoggedResponse, err error) {
	later, n := binary.Varint(*data)
	if n <= 0 || later > maxNumber || later < -maxNumber {
		return a, errLog
	}
	*data = (*data)[n:]
	*at += later
	took, ok := cutNumber(data, maxNumber)
	if index := took % stateBase; !ok || *at < 0 || *at > maxNumber || index >= uint64(len(ledger.ResponseStates)) {
		return a, errLog
	}
	a.State = ledger.ResponseStates[took%stateBase]
	a.To = float64(*at) / 1000
	a.From = a.To - float64(took/stateBase)/1000
	return a, nil
}

// check refuses a log that no runner writes.
func (l *ResponseLog) check() error {
	if len(l.Data) > maxLogged+2*binary.MaxVarintLen64 || l.Unlisted < 0 || l.Unlisted > maxNumber {
		return errLog
	}
	at := int64(0)
	for rest := l.Data; len(rest) > 0; {
		if _, err := cutResponse(&rest, &at); err != nil {
			return err
		}
	}
	return nil
}
