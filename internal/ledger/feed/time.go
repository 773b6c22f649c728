package feed

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// maxDelay is the maximum time by which one runner receives a message later than another runner.
const maxDelay = 5 * time.Second

// setShift sets the difference of the clocks to the median difference between the arrivals of the messages that are
// found. If none is found, setShift uses the difference of the wall clocks.
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

// maxSpread is the usual maximum time between the first arrivals of one message at several runners. Unlike maxDelay, it
// can distinguish neighbors with the same content.
const maxSpread = 100 * time.Millisecond

func (l *linker) distance(i int, id uint32) time.Duration {
	return (l.nodes[id].at - l.entries[i].At - l.shift).Abs()
}

func (l *linker) isNear(i int, id uint32) bool { return l.distance(i, id) <= maxDelay }

type offset struct {
	difference ledger.Instant
	known      bool
}

// offset returns the duration to add to an instant of one log (from) to get the instant of another log (to). It is the
// median difference between the arrivals of the messages that both logs have. Without common messages, it is the
// difference of the wall clocks.
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

// samples is the approximate number of messages from which the difference of two clocks is computed.
const samples = 1001

func (f *Feed) difference(from, to int) ledger.Instant {
	at := map[uint32]ledger.Instant{}
	step := max(len(f.ids[from])/samples, 1)
	for i := 0; i < len(f.ids[from]); i += step {
		at[f.ids[from][i]] = f.logs[from].Entries[i].At
	}
	var all []ledger.Instant
	for i, id := range f.ids[to] {
		if first, common := at[id]; common {
			all = append(all, f.logs[to].Entries[i].At-first)
		}
	}
	if len(all) == 0 {
		return time.Duration(f.logs[from].StartedUS-f.logs[to].StartedUS) * time.Microsecond
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// ArrivedAt returns the first arrival of the message with the given index, as an instant of the given log.
func (f *Feed) ArrivedAt(index, log int) ledger.Instant {
	return f.Messages[index].At + f.offset(0, log)
}

// Lag returns the time by which the runner of a log received messages later than the runner of the first log, by their
// clocks. It returns 0 above maxDelay, because then one of the clocks is wrong.
func (f *Feed) Lag(log int) time.Duration {
	if lag := f.lag(log); lag.Abs() <= maxDelay {
		return lag
	}
	return 0
}

func (f *Feed) lag(log int) time.Duration {
	clocks := time.Duration(f.logs[0].StartedUS-f.logs[log].StartedUS) * time.Microsecond
	return f.offset(0, log) - clocks
}

// setDelays sets the maximum delay of the messages on each log if the clock of a runner is wrong. The delay is the
// longest time from the start of a client's first stream to the first message of the log, up to maxDelay. The first
// message was sent after the first stream had opened.
func (f *Feed) setDelays(records Records) {
	f.delays = make([]ledger.Instant, len(f.logs))
	isClockWrong := false
	for log := range f.logs {
		isClockWrong = isClockWrong || f.lag(log).Abs() > maxDelay
	}
	if !isClockWrong {
		return
	}
	for log, r := range records {
		if l := f.logs[log]; len(l.Entries) > 0 && len(r.Spans) > 0 {
			f.delays[log] = max(f.delays[log], min(l.Entries[0].At-r.Spans[0].From, maxDelay))
		}
	}
}

// delay postpones the times from which the places of streams are certain, if the clock of a runner is wrong.
func (f *Feed) delay(log int, certainFrom []ledger.Instant, spans []ledger.Span) {
	for i, s := range spans {
		if d := f.delays[log]; d > 0 && !s.Resumed {
			certainFrom[i] = max(certainFrom[i], s.From+f.JoinTime+d)
		}
	}
}

// orderTimes corrects the times of messages, because expected messages were sent in the order of their numbers.
func (f *Feed) orderTimes() {
	if f.AnyOrder {
		return
	}
	var times []ledger.Instant
	for i := range f.Messages {
		if f.Messages[i].Live {
			times = append(times, f.Messages[i].At)
		}
	}
	earliest, latest := orderedTimes(times)
	next := 0
	for i := range f.Messages {
		if m := &f.Messages[i]; m.Live {
			m.At, m.Doubt = earliest[next], latest[next]-earliest[next]
			next++
		}
	}
}

// orderedTimes returns the earliest and the latest possible time of each message. Times outside the longest ascending
// sequence are wrong: their messages were sent between the messages before and after them. The first times may all be
// wrong, because a client that joined before the others may lag.
func orderedTimes(times []ledger.Instant) (earliest, latest []ledger.Instant) {
	inOrder := longestAscending(times)
	earliest, latest = slices.Clone(times), slices.Clone(times)
	first, last := slices.Index(inOrder, true), 0
	for i := range times {
		if inOrder[i] {
			last = i
		} else if i > first {
			earliest[i] = times[last]
		}
	}
	next := last
	for i := range slices.Backward(times) {
		if inOrder[i] {
			next = i
		}
		latest[i] = times[next]
		if i < first {
			earliest[i] = latest[i]
		}
	}
	return earliest, latest
}
