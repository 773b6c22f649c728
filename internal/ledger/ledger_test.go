package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	sec      = time.Second
	interval = 15 * sec
)

// A tape plays the events of one connection into a ledger.
type tape struct {
	*Ledger
	t  *testing.T
	at Instant
}

func newTape(t *testing.T) *tape {
	t.Helper()
	return &tape{Ledger: openLedgerAt(&Config{Interval: interval, LatenessLimit: sec}, sec, sec), t: t, at: sec}
}

func (p *tape) wait(d time.Duration) *tape { p.at += d; return p }

// noop counts a noop with number n (0: none) after d.
func (p *tape) noop(d time.Duration, n uint64) *tape {
	p.at += d
	p.Noop(Noop{At: p.at, Number: n, Intact: true})
	return p
}

// regular counts the noops from one number to another, one per interval.
func (p *tape) regular(from, to uint64, numbered bool) *tape {
	for n := from; n <= to; n++ {
		p.noop(interval, numberIf(numbered, n))
	}
	return p
}

// end ends the stream after d, and returns the record.
func (p *tape) end(d time.Duration) Record {
	p.at += d
	p.CloseRequested(p.at)
	p.Closed(p.at+time.Millisecond, "server", true, false)
	return p.Record()
}

// kinds returns the kinds and first numbers of the findings.
func kinds(r Record) (out []string) {
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s %d", f.Kind, f.From))
	}
	return out
}

func TestCleanConnection(t *testing.T) {
	for _, numbered := range []bool{true, false} {
		for _, head := range []time.Duration{sec / 2, 7 * sec, interval, interval + 20*time.Millisecond} {
			for _, tail := range []time.Duration{0, 7 * sec, interval - sec/2, interval + sec/2} {
				r := newTape(t).noop(head, numberIf(numbered, 1)).regular(2, 239, numbered).end(tail)
				require.True(t, r.Faultless(), "numbered=%v head=%v tail=%v: %+v", numbered, head, tail, r)
				require.EqualValues(t, 239, r.Received)
				require.EqualValues(t, 239, r.Expected())
				require.Zero(t, r.Late)
				require.Equal(t, numbered, r.Numbered)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	type want struct {
		missed, duplicated, reordered, corrupted, late uint64
		findings                                       []string
	}
	cases := []struct {
		name string
		play func(p *tape) Record
		want want
	}{
		{"numbered, the third is lost", func(p *tape) Record {
			return p.regular(1, 2, true).noop(2*interval, 4).regular(5, 9, true).end(sec)
		}, want{missed: 1, findings: []string{"lost 3"}}},
		{"numbered, the first is lost, in the same interval as the headers", func(p *tape) Record {
			return p.noop(interval+4*sec, 2).regular(3, 9, true).end(sec)
		}, want{missed: 1, findings: []string{"lost 1"}}},
		{"numbered, one twice", func(p *tape) Record {
			return p.regular(1, 5, true).noop(0, 5).regular(6, 9, true).end(sec)
		}, want{duplicated: 1, findings: []string{"duplicated 5"}}},
		{"numbered, two swapped, a slot apart", func(p *tape) Record {
			return p.regular(1, 2, true).noop(interval, 4).noop(interval, 3).regular(5, 9, true).end(sec)
		}, want{reordered: 1, findings: []string{"reordered 3"}}},
		{"numbered, two swapped, at once", func(p *tape) Record {
			return p.regular(1, 2, true).noop(2*interval, 4).noop(0, 3).regular(5, 9, true).end(sec)
		}, want{reordered: 1, findings: []string{"reordered 3"}}},
		{"numbered, the server skips two slots without numbering them", func(p *tape) Record {
			return p.regular(1, 4, true).noop(3*interval, 5).regular(6, 9, true).end(sec)
		}, want{missed: 2, late: 1, findings: []string{"late 5", "unsent 5"}}},
		{"numbered, silent from the fifth on", func(p *tape) Record {
			return p.regular(1, 4, true).end(5*interval + 5*sec)
		}, want{missed: 5, findings: []string{"tail 5"}}},
		{"numbered, never a noop", func(p *tape) Record {
			return p.end(4*interval + 5*sec)
		}, want{missed: 4, findings: []string{"tail 1"}}},
		{"unnumbered, the third is lost", func(p *tape) Record {
			return p.regular(1, 2, false).noop(2*interval, 0).regular(4, 9, false).end(sec)
		}, want{missed: 1, findings: []string{"unsent 3"}}},
		{"unnumbered, the last is lost", func(p *tape) Record {
			return p.regular(1, 8, false).end(interval + 3*sec)
		}, want{missed: 1, findings: []string{"tail 9"}}},
		{"unnumbered, one twice", func(p *tape) Record {
			return p.regular(1, 5, false).noop(sec, 0).noop(interval-sec, 0).regular(7, 9, false).end(sec)
		}, want{duplicated: 1, findings: []string{"duplicated 5"}}},
		{"unnumbered, the first twice", func(p *tape) Record {
			return p.regular(1, 1, false).noop(0, 0).regular(2, 9, false).end(sec)
		}, want{duplicated: 1, findings: []string{"duplicated 1"}}},
		{"unnumbered, one lost and later one twice do not cancel out", func(p *tape) Record {
			return p.regular(1, 2, false).noop(2*interval, 0).regular(4, 6, false).noop(0, 0).regular(7, 9, false).end(sec)
		}, want{missed: 1, duplicated: 1, findings: []string{"unsent 3", "duplicated 6"}}},
		{"unnumbered, delayed for 2.7 intervals and then in one burst", func(p *tape) Record {
			return p.regular(1, 3, false).noop(interval*27/10, 0).noop(0, 0).noop(interval*3/10, 0).regular(7, 9, false).end(sec)
		}, want{late: 2, findings: []string{"late 4", "late 5"}}},
		{"numbered, delayed for 20.3 intervals and then in one burst", func(p *tape) Record {
			p.regular(1, 3, true).wait(interval * 203 / 10)
			for n := uint64(4); n <= 23; n++ {
				p.noop(0, n)
			}
			return p.noop(interval*7/10, 24).regular(25, 30, true).end(sec)
		}, want{late: 20, findings: []string{"late 4", "late 5", "late 6", "late 7"}}},
		{"one is corrupt", func(p *tape) Record {
			p.regular(1, 3, true).wait(interval)
			p.Noop(Noop{At: p.at, Number: 4, Data: "x"})
			return p.regular(5, 9, true).end(sec)
		}, want{corrupted: 1, findings: []string{"corrupted 4"}}},
		{"a numbered noop without its number", func(p *tape) Record {
			return p.regular(1, 3, true).noop(interval, 0).regular(5, 9, true).end(sec)
		}, want{corrupted: 1, findings: []string{"corrupted 4"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.play(newTape(t))
			require.Equal(t, c.want, want{r.Missed(), r.Duplicated, r.Reordered, r.Corrupted, r.Late, kinds(r)}, "%+v", r)
			require.Equal(t, Completed, r.State)
			require.Equal(t, c.want.missed+c.want.duplicated+c.want.reordered+c.want.corrupted == 0, r.Faultless())
		})
	}
}

func TestLatenessIsGapMinusInterval(t *testing.T) {
	p := newTape(t)
	p.regular(1, 2, true)
	a := p.Noop(Noop{At: p.at + interval + 1500*time.Millisecond, Number: 3, Intact: true})
	require.Equal(t, 1, a.LatenessCount)
	require.Equal(t, 1500*time.Millisecond, a.Lateness[0])
	require.Equal(t, 1, a.Late)
}

func TestGapClockStartsAtTheHeaders(t *testing.T) {
	l := New("a-1", &Config{Interval: interval, LatenessLimit: sec})
	l.Connecting(0)
	require.Equal(t, 40*sec, l.Opened(40*sec))
	a := l.Noop(Noop{At: 40*sec + interval, Number: 1, Intact: true})
	require.Zero(t, a.Lateness[0])
}

func TestEnds(t *testing.T) {
	t.Run("dropped by the server", func(t *testing.T) {
		p := newTape(t)
		p.regular(1, 3, true)
		p.Closed(p.at+sec, "truncated", true, false)
		r := p.Record()
		require.Equal(t, Dropped, r.State)
		require.Zero(t, r.Missed())
	})
	t.Run("the server does not end the stream", func(t *testing.T) {
		p := newTape(t)
		p.regular(1, 3, true)
		p.CloseRequested(p.at + sec)
		p.Closed(p.at+6*sec, ReasonClient, false, false)
		require.Equal(t, Unfinished, p.Record().State)
	})
	t.Run("lost, and refused when the client reconnected", func(t *testing.T) {
		p := newTape(t)
		p.regular(1, 3, true)
		p.Closed(p.at+sec, "reset", true, true)
		require.Equal(t, Waiting, p.Record().State)
		p.CloseRequested(p.at + 9*sec)
		p.Closed(p.at+10*sec, "refused", false, false)
		require.Equal(t, Waiting, p.Record().State, "the verdict must count the client as dropped")
	})
}

func TestReconnect(t *testing.T) {
	t.Run("resumed by number, all replayed", func(t *testing.T) {
		r := newTape(t).regular(1, 3, true).resume(3*interval+5*sec).noop(0, 4).noop(0, 5).noop(0, 6).noop(10*sec, 7).regular(8, 12, true).end(sec)
		require.True(t, r.Faultless(), "%+v", r)
		require.Equal(t, 2, r.Streams)
		require.Equal(t, []Outage{{From: 46 * sec, To: 96 * sec, Replayed: 3}}, r.Outages)
	})
	t.Run("a noop that is due right after the headers is not replayed", func(t *testing.T) {
		r := newTape(t).regular(1, 3, true).resume(5*sec).noop(0, 4).regular(5, 8, true).end(sec)
		require.Equal(t, []Outage{{From: 46 * sec, To: 51 * sec}}, r.Outages, "no slot passed while there was no stream")
	})
	t.Run("later noops are not replayed", func(t *testing.T) {
		r := newTape(t).regular(1, 3, true).resume(3*interval+5*sec).noop(sec/50, 4).noop(sec/10, 5).noop(0, 6).end(sec)
		require.EqualValues(t, 1, r.Outages[0].Replayed)
	})
	t.Run("resumed by number, one not replayed", func(t *testing.T) {
		r := newTape(t).regular(1, 3, true).resume(interval+5*sec).noop(10*sec, 5).regular(6, 12, true).end(sec)
		require.EqualValues(t, 1, r.Missed(), "%+v", r)
	})
	t.Run("the server restarts at 1: noops of the outage are expected by interval", func(t *testing.T) {
		r := newTape(t).regular(1, 3, true).resume(3*interval+5*sec).noop(2*sec, 1).regular(2, 9, true).end(sec)
		require.EqualValues(t, 3, r.Missed(), "%+v", r)
		require.Equal(t, 2, r.Numberings)
	})
	t.Run("unnumbered: noops of the outage are expected", func(t *testing.T) {
		r := newTape(t).regular(1, 3, false).resume(3*interval+5*sec).noop(2*sec, 0).regular(2, 9, false).end(sec)
		require.EqualValues(t, 3, r.Missed(), "%+v", r)
	})
}

func TestMessageUsesANumberButNoSlot(t *testing.T) {
	p := newTape(t)
	p.regular(1, 3, true)
	p.NumberedEvent(p.at+sec, 4)
	r := p.regular(5, 9, true).end(sec)
	require.True(t, r.Faultless(), "%+v", r)
	require.EqualValues(t, 8, r.Received)
	require.EqualValues(t, 1, r.Messages)
}

// A lost message is not a lost noop, although messages and noops share their numbers. It does not change the measured
// interval.
func TestLostMessageDoesNotChangeTheInterval(t *testing.T) {
	p := newTape(t)
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
	p := newTape(t)
	for n := uint64(2); n < 100_000; n += 2 { // every other one is lost
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
	refused.Explain("twice")
	r := refused.Record()
	require.Equal(t, "status 503", r.Reason, "reasons are counted")
	require.Equal(t, "status 503: the backend is full", r.Findings[0].Note)

	good := New("d", &Config{Interval: time.Second, LatenessLimit: time.Second})
	good.Explain("of nothing")
	require.Empty(t, good.Record().Findings)
}
