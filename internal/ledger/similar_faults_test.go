package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// playAt plays noops into a ledger, and ends the stream at end, in intervals after the headers.
func playAt(every time.Duration, end float64, noops ...Noop) Record {
	l := openLedgerAt(&Config{Interval: every, LatenessLimit: sec}, 0, sec)
	at := func(t float64) Instant { return sec + Instant(t*float64(every)) }
	for _, n := range noops {
		l.Noop(n)
	}
	l.CloseRequested(at(end))
	l.Closed(at(end)+time.Millisecond, "server", true, false)
	return l.Record()
}

// noopAt returns a noop t intervals after the headers of playAt's stream.
func noopAt(every time.Duration, t float64, number uint64) Noop {
	return Noop{At: sec + Instant(t*float64(every)), Number: number, Intact: true}
}

// The next-to-last noop is lost.
func TestLossAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{sec, 3 * sec, 15 * sec} {
		for _, firstDue := range []float64{.2, .7, 1} {
			for _, numbered := range []bool{false, true} {
				var noops []Noop
				for slot := range 9 {
					if slot == 7 {
						continue
					}
					noops = append(noops, noopAt(every, firstDue+float64(slot), numberIf(numbered, uint64(len(noops)+1))))
				}
				r := playAt(every, firstDue+8+.01, noops...)
				require.EqualValues(t, 1, r.Missed(), "every %s from %v, numbered %v: %+v", every, firstDue, numbered, r)
			}
		}
	}
}

func TestLateNoopAtTheEndIsNotLost(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{false, true} {
		var noops []Noop
		for slot := range 8 {
			at := .5 + float64(slot)
			if slot == 7 {
				at += .7 // well before the next is due
			}
			noops = append(noops, noopAt(15*sec, at, numberIf(numbered, uint64(slot+1))))
		}
		r := playAt(15*sec, .5+8+.05, noops...) // the next is due 0.75 s before the end, less than LATE_MS
		require.Zero(t, r.Missed(), "%+v", r)
		require.EqualValues(t, 1, r.Undetectable, "the next noop may be lost or in transit: %+v", r)
	}
}

func TestIDsWithoutASequence(t *testing.T) {
	t.Parallel()
	decimal := func(n int) Noop { return Noop{Number: uint64(n)} }
	hex := func(n int) Noop {
		if text := fmt.Sprintf("%x", n); text[len(text)-1] > '9' || text[0] > '9' {
			return Noop{OtherID: true}
		}
		var number uint64
		_, _ = fmt.Sscan(fmt.Sprintf("%x", n), &number)
		return Noop{Number: number}
	}
	small := []int{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7}
	for _, c := range []struct {
		name string
		id   func(i int) Noop // from 0
	}{
		{"a counter over 20 devices, second device", func(i int) Noop { return decimal(2 + 20*i) }},
		{"a counter that 19 devices join later", func(i int) Noop { return decimal(1 + i + 19*max(i-3, 0)) }},
		{"steps of 2 from 1", func(i int) Noop { return decimal(2*i + 1) }},
		{"hexadecimal", func(i int) Noop { return hex(i + 1) }},
		{"always 1", func(int) Noop { return decimal(1) }},
		{"random and small", func(i int) Noop { return decimal(small[i]) }},
		{"every fifth noop has an id", func(i int) Noop { return map[bool]Noop{true: decimal(1 + i/5)}[i%5 == 0] }},
		{"words", func(int) Noop { return Noop{OtherID: true} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var numbered bool
			for _, count := range []int{2, 4, 8, 11, 18, 30} {
				var noops []Noop
				for i := range count {
					n := c.id(i)
					n.At, n.Intact = sec+Instant(i+1)*15*sec, true
					noops = append(noops, n)
				}
				r := playAt(15*sec, float64(count)+.3, noops...)
				numbered = r.Numbered
				require.True(t, r.ReceivedWithoutFault(), "%d noops: %+v", count, r)
			}
			require.False(t, numbered, "after 30 noops the ids must not count as a sequence")
		})
	}
}

// Each noop of a burst is late, not only the first.
func TestNoopsOfABurstAreLate(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{false, true} {
		l := openLedgerAt(&Config{Interval: 5 * sec, LatenessLimit: sec}, 0, sec)
		var lateness []time.Duration
		count := func(at Instant, n uint64) {
			a := l.Noop(Noop{At: at, Number: numberIf(numbered, n), Intact: true})
			lateness = append(lateness, a.Lateness[:a.LatenessCount]...)
		}
		for n := uint64(1); n <= 5; n++ {
			count(sec+Instant(n)*5*sec, n)
		}
		for n := uint64(6); n <= 11; n++ { // due at 31 s … 56 s, delayed until 60 s
			count(60*sec, n)
		}
		count(61*sec, 12)
		late := l.Record().Late
		require.EqualValues(t, 6, late, "numbered %v: %v", numbered, lateness)
		require.Equal(t, 29*sec, l.Record().MaxLateness.Round(sec))
		for _, want := range []time.Duration{29 * sec, 24 * sec, 19 * sec, 14 * sec, 9 * sec, 4 * sec} {
			require.Contains(t, roundDurations(lateness), want, "numbered %v", numbered)
		}
	}
}

func roundDurations(all []time.Duration) (out []time.Duration) {
	for _, d := range all {
		out = append(out, d.Round(sec))
	}
	return out
}

// A request to end at a time when no noop is due leaves no loss undecided.
func TestUndecidedTime(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{false, true} {
		const tolerance = sec + interval/50
		p := newTape().noop(7*sec, numberIf(numbered, 1)).regular(2, 5, numbered)
		for _, c := range []struct{ after, want time.Duration }{
			{sec, 0}, {13 * sec, 0}, {interval, tolerance}, {interval + sec/2, tolerance - sec/2}, {interval + tolerance, 0}, {2 * interval, tolerance},
		} {
			require.Equal(t, c.want, p.UndecidedTime(p.at+c.after), "%v after the last noop", c.after)
		}
		r := p.end(interval + p.UndecidedTime(p.at+interval))
		require.EqualValues(t, 1, r.Missed())
		require.Zero(t, r.Undetectable, "%+v", r)
	}
}

// Among many streams, the random ids of one stream can look like a sequence. The other streams decide.
func TestMajorityOfStreamsDecidesIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		sequences, random int
		want              bool
	}{{"one of many", 1, 20, false}, {"most", 20, 1, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := &Config{Interval: 15 * sec, LatenessLimit: sec}
			stream := func(id func(n uint64) uint64) *Ledger {
				l := openLedgerAt(cfg, 0, sec)
				for n := uint64(1); n <= 6; n++ {
					l.Noop(Noop{At: sec + Instant(n)*15*sec, Number: id(n), Intact: true})
				}
				return l
			}
			var sequential *Ledger
			for range c.sequences {
				sequential = stream(func(n uint64) uint64 { return n })
			}
			for range c.random {
				stream(func(n uint64) uint64 { return 7919 * n % 10 })
			}
			stream(func(uint64) uint64 { return 0 })
			require.Equal(t, c.want, sequential.Record().Numbered)
		})
	}
}

// A loss and a copy can hide each other, and jitter can look like either.
func TestSimilarFaults(t *testing.T) {
	t.Parallel()
	regular := func(count int, number func(slot int) uint64, delay func(slot int) float64) (noops []Noop) {
		for slot := 1; slot <= count; slot++ {
			noops = append(noops, noopAt(15*sec, float64(slot)+delay(slot), number(slot)))
		}
		return noops
	}
	none := func(int) uint64 { return 0 }
	onTime := func(int) float64 { return 0 }
	for _, c := range []struct {
		name               string
		noops              []Noop
		end                float64
		missed, duplicated uint64
	}{
		{"every third is lost, and the previous one arrives again in its slot", regular(12, func(s int) uint64 { return []uint64{0, 1, 2, 2, 4, 5, 5, 7, 8, 8, 10, 11, 11}[s] }, onTime), 12.4, 4, 4},
		{"1, 1, 3, 3, 5, 5", regular(10, func(s int) uint64 { return []uint64{0, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9}[s] }, onTime), 10.4, 5, 5},
		{"every odd one is 0.22 late", regular(12, none, func(s int) float64 { return .22 * float64(s%2) }), 12.4, 0, 0},
		{"the last is on time, all before it 0.28 late", regular(12, none, func(s int) float64 { return map[bool]float64{true: 0, false: .28}[s == 12] }), 12.4, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := playAt(15*sec, c.end, c.noops...)
			require.Equal(t, [2]uint64{c.missed, c.duplicated}, [2]uint64{r.Missed(), r.Duplicated}, "%+v", r)
			require.InDelta(t, 15, r.Interval.Seconds(), .4, "%+v", r)
		})
	}
	t.Run("a copy 0.1 later does not change the interval, nor does one noop after the request to end", func(t *testing.T) {
		t.Parallel()
		l := openLedgerAt(&Config{Interval: 15 * sec, LatenessLimit: sec}, 0, sec)
		for n := range 10 {
			l.Noop(noopAt(15*sec, float64(n+1), 0))
			l.Noop(noopAt(15*sec, float64(n+1)+.1, 0))
		}
		l.CloseRequested(sec + 15*sec*104/10)
		l.Noop(noopAt(15*sec, 10.5, 0))
		l.Closed(sec+15*sec*105/10, "server", true, false)
		r := l.Record()
		require.EqualValues(t, 11, r.Duplicated, "%+v", r)
		require.Equal(t, 15*sec, r.Interval.Round(sec))
	})
	t.Run("the loss of every third noop does not change the interval", func(t *testing.T) {
		t.Parallel()
		var noops []Noop
		for slot := 1; slot <= 30; slot++ {
			if slot%3 != 0 {
				noops = append(noops, noopAt(15*sec, float64(slot), 0))
			}
		}
		r := playAt(15*sec, 30.4, noops...)
		require.EqualValues(t, 10, r.Missed())
		require.Equal(t, 15*sec, r.Interval.Round(sec))
	})
}

// A stall right before the end makes noops late, and the end waits for them.
func TestUndecidedTimeIncludesDelayedNoops(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{false, true} {
		p := newTape().noop(7*sec, numberIf(numbered, 1)).regular(2, 6, numbered).noop(2*interval, numberIf(numbered, 7))
		require.Positive(t, p.UndecidedTime(p.at+sec))
		require.Zero(t, p.UndecidedTime(p.at+interval/2+sec))
		p.noop(0, numberIf(numbered, 8))
		require.Zero(t, p.UndecidedTime(p.at+sec))
	}
}
