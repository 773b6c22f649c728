package feed

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// maxDelay limits how much later one runner may receive a message than another one, where only the time shows which of several
// messages with the same content it is.
const maxDelay = 5 * time.Second

// setShift sets the difference of the clocks: the median of the messages that are found.
func (l *linker) setShift() {
	l.shift = time.Duration(l.logs[l.log].StartedUS-l.logs[0].StartedUS) * time.Microsecond
	var all []ledger.Instant
	step := max(len(l.ids)/samples, 1)
	for i := 0; i < len(l.ids); i += step {
		if l.ids[i] != 0 {
			all = append(all, l.nodes[l.ids[i]].at-l.entries[i].At)
		}
	}
	if len(all) > 0 {
		slices.Sort(all)
		l.shift = all[len(all)/2]
	}
}

// maxSpread limits the time between the first arrivals of one message at several runners, where no other message shows which of
// neighbours with the same content it is.
const maxSpread = 100 * time.Millisecond

// distance returns the time between the arrival of an entry and that of a message at other runners.
func (l *linker) distance(i int, id uint32) time.Duration {
	return (l.nodes[id].at - l.entries[i].At - l.shift).Abs()
}

// near reports whether an entry arrived about when a message arrived at other runners.
func (l *linker) near(i int, id uint32) bool { return l.distance(i, id) <= maxDelay }

// An offset is the difference between the instants of two logs at one moment.
type offset struct {
	difference ledger.Instant
	known      bool
}

// offset returns what to add to an instant of one log for that of another one: the median difference of the messages that both have.
// If they share none, their clocks are trusted.
func (f *Feed) offset(from, to int) ledger.Instant {
	if from == to {
		return 0
	}
	if f.offsets[from] == nil {
		f.offsets[from] = make([]offset, len(f.logs))
	}
	o := &f.offsets[from][to]
	if !o.known {
		*o = offset{f.difference(from, to), true}
	}
	return o.difference
}

// samples is the number of messages from which the difference of two clocks is known.
const samples = 1001

func (f *Feed) difference(from, to int) ledger.Instant {
	at := map[uint32]ledger.Instant{}
	step := max(len(f.ids[from])/samples, 1)
	for i := 0; i < len(f.ids[from]); i += step {
		at[f.ids[from][i]] = f.logs[from].Entries[i].At
	}
	var all []ledger.Instant
	for i, id := range f.ids[to] {
		if there, both := at[id]; both {
			all = append(all, f.logs[to].Entries[i].At-there)
		}
	}
	if len(all) == 0 {
		return time.Duration(f.logs[from].StartedUS-f.logs[to].StartedUS) * time.Microsecond
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// ArrivedAt returns when the message with an index first arrived, as an instant of a log.
func (f *Feed) ArrivedAt(index, log int) ledger.Instant {
	return f.Messages[index].At + f.offset(0, log)
}

// Lag returns how much later than the first log a log received messages by the clocks of their runners; 0 if it is so much that one of the
// clocks is wrong.
func (f *Feed) Lag(log int) time.Duration {
	clocks := time.Duration(f.logs[0].StartedUS-f.logs[log].StartedUS) * time.Microsecond
	if lag := f.offset(0, log) - clocks; lag.Abs() <= maxDelay {
		return lag
	}
	return 0
}
