package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// playCode makes the calls that code encodes in three bytes each: the call, the time since the previous call in
// sixteenths of an interval, and a number. expected is the time for which streams were open before the end was
// requested.
func playCode(code []byte) (r Record, events []wireEvent, streams int, expected time.Duration) {
	const tick = interval / 16
	l := New("a-1", &Config{Interval: interval, LatenessLimit: sec})
	at, next, open, closing := Instant(sec), uint64(1), false, false
	l.Connecting(at)
	for ; len(code) >= 3; code = code[3:] {
		step := time.Duration(code[1]%40) * tick
		at += step
		if open && !closing {
			expected += step
		}
		switch op := code[0] % 16; {
		case op == 0 && open:
			l.Closed(at, "reset", true, true)
			open = false
		case op == 1 && !open:
			l.Connecting(at)
			l.Opened(at)
			open = true
			streams++
		case op == 2 && open:
			l.NumberedEvent(at, next)
			next++
		case op == 3:
			l.CloseRequested(at)
			closing = true
		case op == 4 && open: // any noop
			l.Noop(Noop{At: at, Number: uint64(code[2]) << (code[1] % 64), Intact: code[2]%2 == 0})
		case op == 5:
			next = uint64(code[2])
		case open:
			n := Noop{At: at, Intact: op != 6}
			if op != 7 {
				n.Number = next
				next++
			}
			l.Noop(n)
			events = append(events, wireEvent{at: at, number: n.Number})
		}
	}
	l.CloseRequested(at)
	l.Closed(at+1, "server", open, false)
	return l.Record(), events, streams, expected
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte{1, 0, 0, 8, 16, 0, 8, 16, 0, 8, 16, 0})
	f.Add([]byte{1, 0, 0, 7, 16, 0, 7, 31, 0, 7, 16, 0, 7, 9, 0})                                           // no numbers; one early, one twice
	f.Add([]byte{1, 0, 0, 8, 16, 0, 0, 1, 0, 1, 16, 0, 8, 0, 0, 8, 9, 0, 5, 0, 1, 8, 16, 0})                // a resume
	f.Add([]byte{1, 0, 0, 8, 16, 0, 8, 16, 0, 0, 1, 0, 1, 16, 0, 5, 0, 1, 8, 0, 0, 8, 9, 0})                // a restart
	f.Add([]byte{1, 0, 0, 8, 16, 0, 4, 39, 255, 4, 63, 255, 2, 1, 0, 6, 16, 0, 3, 1, 0})                    // implausible numbers
	f.Add([]byte{1, 0, 0, 2, 4, 0, 8, 12, 0, 2, 16, 0, 5, 0, 9, 8, 16, 0, 5, 0, 4, 8, 16, 0, 8, 0, 0})      // messages and holes
	f.Add([]byte{1, 0, 0, 8, 16, 0, 3, 1, 0, 8, 39, 0, 8, 39, 0, 8, 39, 0, 8, 39, 0, 8, 39, 0})             // kept open after the close was requested
	f.Add([]byte{1, 12, 0, 9, 14, 0, 2, 32, 0, 2, 32, 0, 0, 24, 0, 1, 18, 0, 0, 25, 0, 1, 18, 0, 8, 17, 0}) // messages alone, then a resume
	f.Fuzz(func(t *testing.T, code []byte) {
		r, events, streams, expected := playCode(code)
		require.Empty(t, invariantViolation(r))
		if r.ReceivedWithoutFault() {
			// A client without a fault received one noop per interval of its streams, except at most one at each
			// end of a stream, and one per late noop.
			require.LessOrEqual(t, wholeIntervals(expected, interval), r.Received+uint64(2*streams)+r.Late, "%+v", r)
		}
		if r.Numbered && streams == 1 && len(events) > 0 && r.ReceivedWithoutFault() {
			for i, e := range events[1:] {
				require.Greater(t, e.number, events[i].number, "%+v", r)
			}
		}
	})
}
