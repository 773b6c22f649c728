package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tenth = time.Second / 10

// ledgerWithFiveNoops returns the ledger of a client that has received 5 noops, at 1.5, 2.5 … 5.5 s.
func ledgerWithFiveNoops(cfg *Config, numbered bool) *Ledger {
	cfg.Counting, cfg.Interval, cfg.LatenessLimit = Noops, time.Second, time.Second
	l := openLedgerAt(cfg, tenth, 5*tenth)
	for n := uint64(1); n <= 5; n++ {
		l.Noop(Noop{At: Instant(n)*time.Second + 5*tenth, Number: numberIf(numbered, n), Intact: true})
	}
	return l
}

func runByNumberAndClock(t *testing.T, name string, test func(t *testing.T, numbered bool)) {
	t.Helper()
	for _, numbered := range []bool{true, false} {
		t.Run(name+map[bool]string{true: ", by number", false: ", by the clock"}[numbered], func(t *testing.T) {
			t.Parallel()
			test(t, numbered)
		})
	}
}

// The losses of noops that become due while a client is disconnected at the end of the run are undetectable, regardless
// of how the stream ended. Noops that became due while the stream was open are expected.
func TestNoopsDueInTheLastOutageAreUndetectable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                 string
		ended, requested     Instant
		dialed               Instant // 0: not before the request
		missed, undetectable uint64
	}{
		{"disconnected while many became due", 60 * tenth, 124 * tenth, 0, 0, 6},
		{"reconnecting, without an answer", 60 * tenth, 124 * tenth, 70 * tenth, 0, 6},
		{"silent, then disconnected", 92 * tenth, 102 * tenth, 0, 3, 1},
	} {
		for _, lifetime := range []time.Duration{0, 2 * time.Second} {
			runByNumberAndClock(t, c.name+", lifetime "+lifetime.String(), func(t *testing.T, numbered bool) {
				l := ledgerWithFiveNoops(&Config{MaxOutage: 30 * time.Second, Lifetime: lifetime, ClientEnds: true}, numbered)
				l.Closed(c.ended, "server", true, true)
				if c.dialed > 0 {
					l.Connecting(c.dialed)
				}
				l.CloseRequested(c.requested)
				if c.dialed > 0 {
					l.Closed(c.requested, ReasonClient, false, false)
				}
				r := l.Record()
				require.Equal(t, Completed, r.State)
				require.Equal(t, "server", r.Reason)
				require.Equal(t, c.missed, r.Missed(), "%+v", r)
				undetectable := c.undetectable
				if !numbered {
					undetectable++ // a noop may be lost before the first one, which arrived an interval after the headers
				}
				require.Equal(t, undetectable, r.Undetectable, "%+v", r)
				require.Equal(t, Outage{From: c.ended, To: c.requested, Planned: lifetime > 0}, *r.LastOutage)
			})
		}
	}
}

// A client is dropped at the end only if it has been disconnected for longer than MAX_OUTAGE.
func TestClientIsDroppedAfterMaxOutage(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	for _, c := range []struct {
		name     string
		lifetime time.Duration
		attempts []Instant // refused a tenth of a second later
		dialing  Instant
		end      Instant
		want     State
	}{
		{"refused for MAX_OUTAGE", 0, []Instant{70 * tenth, 80 * tenth}, 0, 90 * tenth, Completed},
		{"refused for longer", 0, []Instant{70 * tenth, 80 * tenth}, 0, 91 * tenth, Waiting},
		{"without an answer for longer", 0, nil, 70 * tenth, 91 * tenth, Waiting},
		{"ended as planned, refused for MAX_OUTAGE", 2 * time.Second, []Instant{70 * tenth}, 0, 90 * tenth, Completed},
		{"ended as planned, not refused: another check limits the outage", 2 * time.Second, nil, 0, 91 * tenth, Completed},
	} {
		runByNumberAndClock(t, c.name, func(t *testing.T, numbered bool) {
			l := ledgerWithFiveNoops(&Config{MaxOutage: limit, Lifetime: c.lifetime}, numbered)
			l.Closed(60*tenth, "server", true, true)
			for _, at := range c.attempts {
				l.Connecting(at)
				l.Closed(at+tenth, "status 503", false, true)
			}
			if c.dialing > 0 {
				l.Connecting(c.dialing)
			}
			l.CloseRequested(c.end)
			if c.dialing > 0 {
				l.Closed(c.end, ReasonClient, false, false)
			}
			r := l.Record()
			require.Equal(t, c.want, r.State, "%+v", r)
			require.Equal(t, c.end-60*tenth, r.LastOutage.To-r.LastOutage.From)
			require.Equal(t, len(c.attempts), r.RefusedAttempts())
		})
	}
}

// The client closes a stream that opened after the request to end it, because the service received the request before
// the stream existed.
func TestStreamOpenedAfterTheRequestIsNotAFault(t *testing.T) {
	t.Parallel()
	runByNumberAndClock(t, "opened", func(t *testing.T, numbered bool) {
		l := ledgerWithFiveNoops(&Config{MaxOutage: 30 * time.Second}, numbered)
		l.Closed(60*tenth, "server", true, true)
		l.Connecting(61 * tenth)
		l.CloseRequested(62 * tenth)
		l.Opened(63 * tenth)
		l.Closed(63*tenth, ReasonClient, false, false)
		r := l.Record()
		require.True(t, r.ReceivedWithoutFault(), "%+v", r)
	})
}

// No noop is expected on a stream before its first noop is due. By number, losses of noops that became due before the
// headers are detectable only if a noop arrives after the headers. By the clock, these noops count as missed.
func TestNoNoopIsExpectedBeforeTheFirstInterval(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                               string
		ended, reopened, end               Instant
		missed, undetectable               uint64 // by number
		missedByClock, undetectableByClock uint64
	}{
		{"the stream is old enough for one", 57 * tenth, 60 * tenth, 81 * tenth, 1, 2, 1, 2},
		{"silent before the end of the first stream", 92 * tenth, 93 * tenth, 99 * tenth, 3, 0, 3, 0},
	} {
		runByNumberAndClock(t, c.name, func(t *testing.T, numbered bool) {
			l := ledgerWithFiveNoops(&Config{MaxOutage: 30 * time.Second}, numbered)
			reconnect(l, c.ended, c.reopened, c.reopened)
			l.CloseRequested(c.end)
			l.Closed(c.end+1, "server", true, false)
			r := l.Record()
			missed, undetectable := c.missed, c.undetectable
			if !numbered {
				missed, undetectable = c.missedByClock, c.undetectableByClock+1 // a noop before the first one may be lost
			}
			require.Equal(t, Completed, r.State)
			require.Equal(t, missed, r.Missed(), "%+v", r)
			require.Equal(t, undetectable, r.Undetectable, "%+v", r)
		})
	}
}

// No noop is expected on a stream that is lost before its first noop is due, regardless of when the next stream
// delivers that noop.
func TestNoNoopIsExpectedOnAStreamLostBeforeTheFirst(t *testing.T) {
	t.Parallel()
	for _, replayed := range []bool{true, false} {
		runByNumberAndClock(t, fmt.Sprint("replayed ", replayed), func(t *testing.T, numbered bool) {
			l := openLedgerAt(&Config{Interval: time.Second, LatenessLimit: time.Second, MaxOutage: 30 * time.Second}, tenth, tenth)
			reconnect(l, 9*tenth, 12*tenth, 12*tenth)
			number, at := uint64(1), 21*tenth // the schedule continues, from 1.1 s on
			if replayed {
				l.Noop(Noop{At: 12*tenth + 1, Number: 1, Intact: true})
				number++
			}
			for ; number < 6; number++ {
				l.Noop(Noop{At: at, Number: numberIf(numbered, number), Intact: true})
				at += time.Second
			}
			l.CloseRequested(at - 5*tenth)
			l.Closed(at, "server", true, false)
			r := l.Record()
			require.Equal(t, Completed, r.State)
			if numbered || !replayed { // the clock cannot show that the first noop was replayed
				require.True(t, r.ReceivedWithoutFault(), "%+v", r)
			}
		})
	}
}

// Replayed noops show that the service stored them, but not when the next one is due.
func TestReplayedNoopsDoNotShowTheSchedule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                 string
		replays              uint64
		end                  Instant
		missed, undetectable uint64
	}{
		{"one is not replayed, as the next noop would show", 1, 80 * tenth, 0, 1},
		{"all are replayed, and another one may have been due", 2, 89 * tenth, 0, 1},
		{"all are replayed, and another one was due", 2, 98 * tenth, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := ledgerWithFiveNoops(&Config{MaxOutage: 30 * time.Second}, true)
			reconnect(l, 60*tenth, 77*tenth, 77*tenth)
			for n := range c.replays {
				l.Noop(Noop{At: 77*tenth + 1, Number: 6 + n, Intact: true})
			}
			l.CloseRequested(c.end)
			l.Closed(c.end+1, "server", true, false)
			r := l.Record()
			require.Equal(t, Completed, r.State)
			require.Equal(t, c.missed, r.Missed(), "%+v", r)
			require.Equal(t, c.undetectable, r.Undetectable, "%+v", r)
		})
	}
}
