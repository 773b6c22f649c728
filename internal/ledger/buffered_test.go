package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A proxy that buffers a whole stream, such as haproxy with compression, delivers the stream when the server ends it.
// The burst arrives 19.7 intervals after the headers, so it does not show whether a 20th noop was due.
func TestBufferedStreamMissesNothing(t *testing.T) {
	t.Parallel()
	runByNumberAndClock(t, "buffered", func(t *testing.T, numbered bool) {
		l := openLedgerAt(&Config{Counting: Noops, Interval: time.Second, LatenessLimit: time.Second, ClientEnds: true}, 0, 3*tenth)
		l.CloseRequested(20 * time.Second)
		for n := uint64(1); n <= 19; n++ {
			l.Noop(Noop{At: 20*time.Second + Instant(n)*time.Microsecond, Number: numberIf(numbered, n), Intact: true})
		}
		l.Closed(20*time.Second+tenth, "server", true, false)
		r := l.Record()
		require.EqualValues(t, 19, r.Received)
		require.Zero(t, r.Missed(), "%+v", r)
		require.NotZero(t, r.Undetectable, "%+v", r)
	})
}
