package ledger

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A randomClient is one client with several streams. The server numbers one noop per interval, whether or not a stream
// is open, and replays the noops of an outage after the reconnect. It may restart its numbers at 1.
type randomClient struct {
	r       *rand.Rand
	l       *Ledger
	at      Instant // the next slot
	number  uint64
	batches [][]wireEvent // by numbering

	lost     int
	restarts int
	text     strings.Builder
}

func (f *randomClient) noop(at Instant, number uint64) {
	f.l.Noop(Noop{At: at, Number: number, Intact: true})
	last := len(f.batches) - 1
	f.batches[last] = append(f.batches[last], wireEvent{at: at, number: number})
}

// playSlots plays slots on an open stream. Some noops are lost.
func (f *randomClient) playSlots(slots int, loss float64) {
	for range slots {
		f.number++
		if f.r.Float64() < loss {
			f.lost++
			fmt.Fprintf(&f.text, "drop %d, ", f.number)
		} else {
			f.noop(f.at, f.number)
		}
		f.at += interval
	}
}

// cut ends the stream after the last slot and opens another one. It returns the number of slots of the outage, and the
// time of the reconnect.
func (f *randomClient) cut() (missed int, reconnectedAt Instant) {
	cutAt := f.at - interval + Instant(f.r.Float64()*.3*float64(interval))
	reconnectedAt = cutAt + Instant(f.r.Float64()*6*float64(interval))
	reconnect(f.l, cutAt, reconnectedAt, reconnectedAt)
	for f.at <= reconnectedAt {
		f.at += interval
		missed++
	}
	return missed, reconnectedAt
}

func playRandomClient(seed, n uint64) (f *randomClient, rec Record) {
	f = &randomClient{r: rand.New(rand.NewPCG(seed, n)), batches: [][]wireEvent{nil}}
	f.l = openLedgerAt(&Config{Interval: interval, LatenessLimit: sec}, 0, sec)
	f.at = sec + Instant((.2+.8*f.r.Float64())*float64(interval))
	loss := 0.0
	if f.r.IntN(2) == 0 {
		loss = .2 * f.r.Float64()
	}
	f.playSlots(3+f.r.IntN(10), 0)
	for range 1 + f.r.IntN(3) {
		missed, reconnectedAt := f.cut()
		if f.r.IntN(4) == 0 { // the server restarts
			f.restarts++
			fmt.Fprintf(&f.text, "restart after %d slots, ", missed)
			f.number, f.batches = 0, append(f.batches, nil)
			f.lost += missed
			f.playSlots(2, 0) // the first noops arrive; otherwise the schedule would be unknown
		} else {
			fmt.Fprintf(&f.text, "resume after %d slots, ", missed)
			for range missed {
				f.number++
				if f.r.Float64() < loss {
					f.lost++
					fmt.Fprintf(&f.text, "no replay of %d, ", f.number)
					continue
				}
				f.noop(reconnectedAt+Instant(f.r.IntN(1000))*time.Microsecond, f.number)
			}
		}
		f.playSlots(2+f.r.IntN(10), loss)
	}
	f.playSlots(1, 0)
	end := f.at - interval + Instant((.2+.65*f.r.Float64())*float64(interval))
	fmt.Fprintf(&f.text, "end %.2f after the last", float64(end-f.at+interval)/float64(interval))
	f.l.CloseRequested(end)
	f.l.Closed(end+1, "server", true, false)
	return f, f.l.Record()
}

func TestRandomClientsWithReconnects(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for n := range uint64(scenarioCount) {
		f, r := playRandomClient(seed, n)
		var m tally
		for _, events := range f.batches {
			counts := countNumbers(events)
			m.received += counts.received
			m.lost += counts.lost
			m.duplicated += counts.duplicated
			m.reordered += counts.reordered
		}
		fault := invariantViolation(r)
		switch {
		case fault != "":
		case r.Lost != m.lost || r.Received != m.received || r.Duplicated != m.duplicated || r.Reordered != m.reordered:
			fault = fmt.Sprintf("the counts differ from the model: %+v", m)
		case r.ReceivedWithoutFault() && f.lost > 0:
			fault = "a false pass"
		case !r.ReceivedWithoutFault() && f.lost == 0 && f.restarts == 0:
			fault = "a false alarm"
		case f.restarts == 0 && r.Missed() != uint64(f.lost):
			fault = fmt.Sprintf("%d noops count as missed, but %d were lost", r.Missed(), f.lost)
		}
		if fault != "" {
			require.Failf(t, fault, "playRandomClient(%d, %d)\n%s\n%+v", seed, n, &f.text, r)
		}
	}
}

// Numbers that continue after a reconnect show the losses of the outage, but not the silence of an open stream before
// it. A server that stops sending and then closes the stream assigns no numbers in between.
func TestSilenceBeforeADropIsMissed(t *testing.T) {
	t.Parallel()
	drop := func(p *tape, silence, outage time.Duration) { p.wait(silence).resume(outage) }
	cases := []struct {
		name   string
		play   func(p *tape)
		missed uint64
	}{
		{"three slots, and the numbers continue", func(p *tape) {
			p.regular(1, 4, true)
			drop(p, 3*interval+2*sec, sec)
			p.noop(interval, 5)
		}, 3},
		{"one of three is replayed", func(p *tape) {
			p.regular(1, 4, true)
			drop(p, 3*interval+2*sec, sec)
			p.noop(0, 5).noop(interval, 6)
		}, 2},
		{"the close is requested in the outage", func(p *tape) {
			p.regular(1, 4, true)
			p.wait(3*interval + 2*sec)
			p.Closed(p.at, "idle", false, true)
			p.CloseRequested(p.wait(sec).at)
			p.Connecting(p.wait(4 * interval).at)
			p.Opened(p.at)
			p.noop(sec, 5).noop(2*interval, 6)
		}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newTape()
			c.play(p)
			r := p.end(sec)
			require.Equal(t, c.missed, r.Missed(), "%+v", r)
			require.True(t, r.Numbered)
		})
	}
}

// A client may reconnect after the request to end, and the server then ends that stream as well.
func TestReconnectAfterCloseRequestCountsOnce(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(p *tape){
		"no noop arrived": func(p *tape) { p.wait(3*interval + sec) },
		"silent at the end, unnumbered": func(p *tape) {
			p.regular(1, 5, false).wait(3 * interval)
		},
		"the last arrived twice, unnumbered": func(p *tape) {
			p.regular(1, 9, false).noop(interval*55/100, 0)
		},
		"the last arrived twice, corrupted": func(p *tape) {
			p.regular(1, 8, false).wait(interval)
			for range 2 {
				p.Noop(Noop{At: p.at, Data: "x"})
				p.wait(interval * 55 / 100)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape()
			play(p)
			first := p.end(sec)
			require.Empty(t, invariantViolation(first))
			require.False(t, first.ReceivedWithoutFault())
			for range 3 {
				p.wait(sec).Connecting(p.at)
				p.Opened(p.at)
				next := p.end(sec)
				require.Empty(t, invariantViolation(next))
				require.Equal(t, first.Expected(), next.Expected(), "%+v", next)
				require.Equal(t, first.Missed(), next.Missed(), "%+v", next)
				require.Equal(t, first.Duplicated, next.Duplicated, "%+v", next)
			}
		})
	}
}
