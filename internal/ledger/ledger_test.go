package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	sec      = time.Second
	interval = 15 * sec
)

// A tape plays the history of one client into a ledger.
type tape struct {
	*Ledger
	at Instant
}

func newTape() *tape {
	return &tape{Ledger: openLedgerAt(&Config{Interval: interval, LatenessLimit: sec}, sec, sec), at: sec}
}

func (p *tape) wait(d time.Duration) *tape { p.at += d; return p }

// noop counts a noop after d, with the number n, or without a number if n is 0.
func (p *tape) noop(d time.Duration, n uint64) *tape {
	p.at += d
	p.Noop(Noop{At: p.at, Number: n, Intact: true})
	return p
}

func (p *tape) regular(from, to uint64, numbered bool) *tape {
	for n := from; n <= to; n++ {
		p.noop(interval, numberIf(numbered, n))
	}
	return p
}

func (p *tape) end(d time.Duration) Record {
	p.at += d
	p.CloseRequested(p.at)
	p.Closed(p.at+time.Millisecond, "server", true, false)
	return p.Record()
}

func (p *tape) resume(outage time.Duration) *tape {
	reconnect(p.Ledger, p.at, p.at+outage, p.at+outage)
	return p.wait(outage)
}

func TestReconnect(t *testing.T) {
	t.Run("resumed by number, all replayed", func(t *testing.T) {
		r := newTape().regular(1, 3, true).resume(3*interval+5*sec).noop(0, 4).noop(0, 5).noop(0, 6).noop(10*sec, 7).regular(8, 12, true).end(sec)
		require.True(t, r.ReceivedWithoutFault(), "%+v", r)
		require.Equal(t, 2, r.Streams)
		require.Equal(t, []Outage{{From: 46 * sec, To: 96 * sec, Replayed: 3}}, r.Outages)
	})
	t.Run("a noop that is due right after the headers is not replayed", func(t *testing.T) {
		r := newTape().regular(1, 3, true).resume(5*sec).noop(0, 4).regular(5, 8, true).end(sec)
		require.Equal(t, []Outage{{From: 46 * sec, To: 51 * sec}}, r.Outages, "no slot passed while there was no stream")
	})
	t.Run("later noops are not replayed", func(t *testing.T) {
		r := newTape().regular(1, 3, true).resume(3*interval+5*sec).noop(sec/50, 4).noop(sec/10, 5).noop(0, 6).end(sec)
		require.EqualValues(t, 1, r.Outages[0].Replayed)
	})
}

// A lost message is not a lost noop, although messages and noops share their numbers. The loss of a message does not
// change the measured interval.
func TestLostMessageDoesNotChangeTheInterval(t *testing.T) {
	p := newTape()
	for n := uint64(1); n < 40; n += 2 {
		p.noop(interval, n)
		if n != 11 && n != 25 {
			p.NumberedEvent(p.at+sec, n+1)
		}
	}
	r := p.end(2 * sec)
	require.EqualValues(t, 2, r.Lost, "%+v", r)
	require.Equal(t, interval, r.Interval)
}

func TestLedgerSizeIsConstant(t *testing.T) {
	p := newTape()
	for n := uint64(2); n < 100_000; n += 2 { // every other noop is lost
		p.noop(2*interval, n)
	}
	r := p.end(sec)
	require.LessOrEqual(t, len(r.Findings), maxFindings)
	require.Len(t, p.byNumber.numbers.holes, maxRanges)
	require.EqualValues(t, 49_999, r.Missed())
}

func TestExplainAddsTheCause(t *testing.T) {
	t.Parallel()
	refused := New("d", &Config{Interval: time.Second, LatenessLimit: time.Second})
	refused.Connecting(1)
	refused.Closed(2, "status 503", false, false)
	refused.Explain("the backend is full")
	refused.Explain("only the first explanation counts")
	r := refused.Record()
	require.Equal(t, "status 503", r.Reason, "Explain must not change the reason, because reasons are counted")
	require.Equal(t, "status 503: the backend is full", r.Findings[0].Note)

	good := New("d", &Config{Interval: time.Second, LatenessLimit: time.Second})
	good.Explain("no attempt has failed")
	require.Empty(t, good.Record().Findings)
}
