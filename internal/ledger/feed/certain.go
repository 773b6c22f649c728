package feed

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

const (
	// mostShifts limits the messages before and after a stream's first one that are compared with it.
	mostShifts = 4096
	// mostCompared limits the messages of a stream that are compared with those at other places.
	mostCompared = 1024
)

// Monotonous returns the number of different contents and the mean interval of a runner's messages if they are too few and too short to
// compare streams; otherwise 0.
func (f *Feed) Monotonous() (contents int, interval time.Duration) {
	for _, l := range f.logs {
		if l.monotonous > 0 && len(l.Entries) > 1 {
			return l.monotonous, l.interval()
		}
	}
	return 0, 0
}

// interval returns the mean time between two messages.
func (l *Log) interval() time.Duration {
	last := len(l.Entries) - 1
	return (l.Entries[last].At - l.Entries[0].At) / time.Duration(last)
}

// certain returns for each stream of a connection when it had received enough to know with which message it began; 0: from its start on.
// If content repeats, its first messages may be others with the same content. Until then, a deviation from other streams may not be a fault.
func (l *Log) certain(r *ledger.Record) []ledger.Instant {
	certain := make([]ledger.Instant, len(r.Spans))
	if l.repeated == nil && l.monotonous == 0 {
		return certain
	}
	for i, s := range r.Spans {
		switch {
		case s.Resumed || s.First == 0:
		case l.monotonous > 0, l.few && len(l.Entries) < fewMessages && s.From > l.Entries[0].At:
			certain[i] = end(r, s)
		default:
			certain[i] = l.certainFrom(r, s)
		}
	}
	return certain
}

// setRepeated finds the repeated contents of all logs. If one log is monotonous, the topic is.
func setRepeated(logs []*Log) {
	monotonous := 0
	for _, l := range logs {
		l.setRepeated()
		monotonous = max(monotonous, l.monotonous)
	}
	for _, l := range logs {
		l.monotonous = monotonous
	}
}

// setRepeated finds the contents of several messages, if streams received more than one of these, unless all have the same.
func (l *Log) setRepeated() {
	repeated, shared, contents := map[uint64]bool{}, false, 0
	for i := range l.Entries {
		e := &l.Entries[i]
		if !e.Repeat {
			contents++
			continue
		}
		repeated[e.Print], shared = true, shared || e.Count > 1
	}
	if !shared || contents == 1 {
		return
	}
	l.repeated = repeated
	l.few = contents <= fewContents
	if l.few && l.interval() < shortInterval {
		l.monotonous = contents
	}
}

// A log of so few contents and such a short mean interval is monotonous: several messages with the same content are on their way at once,
// so it is unknown which one a stream lacks. So few messages show no place of a stream that opened after the first one.
const (
	fewContents   = 5
	fewMessages   = 32
	shortInterval = 60 * time.Millisecond
)

// dropUncertain returns the record of a connection without the messages with repeated content that arrived out of order before the place
// of their stream was certain.
func dropUncertain(l *Log, r *ledger.Record) *ledger.Record {
	if l.repeated == nil || r.Deviations == nil || len(r.Deviations.Overtaken) == 0 {
		return r
	}
	certain := l.certain(r)
	out, d := *r, *r.Deviations
	out.Deviations = &d
	d.Overtaken = slices.DeleteFunc(slices.Clone(d.Overtaken), func(o ledger.Overtaken) bool {
		return l.repeated[l.Entries[o.Number-1].Print] && startsBefore(r.Spans, certain, o.At)
	})
	return &out
}

// startsBefore reports whether the place of the stream that was open at an instant was not certain yet.
func startsBefore(spans []ledger.Span, certain []ledger.Instant, at ledger.Instant) bool {
	for i, s := range spans {
		if at >= s.From && at < certain[i] {
			return true
		}
	}
	return false
}

// certainFrom returns when the messages of a stream no longer fit at another place of the log: not at one that is some messages
// earlier or later.
func (l *Log) certainFrom(r *ledger.Record, s ledger.Span) ledger.Instant {
	entries := l.Entries
	late := map[uint64]bool{}
	if r.Deviations != nil {
		for _, o := range r.Deviations.Overtaken {
			late[o.Number] = true
		}
	}
	var shifts []int
	run, needed := 0, 1 // messages in order
	for n := s.First; n <= s.Last; n++ {
		if !hasReceived(r, n) || late[n] {
			if l.few && l.repeated[entries[n-1].Print] { // it may be at a wrong place
				run, needed = 0, context
			}
			continue
		}
		if !l.repeated[entries[n-1].Print] { // no other message has this content
			return entries[n-1].At
		}
		if run == 0 {
			shifts = l.shifts(int(n) - 1) // #nosec G115 -- bounded by the log
		} else {
			shifts = fitting(entries, shifts, int(n)-1) // #nosec G115 -- bounded by the log
		}
		if len(shifts) > 0 {
			needed = context
		}
		run++
		switch {
		case run >= needed && len(shifts) == 0:
			return entries[n-1].At
		case run >= mostCompared: // the content is periodic
			return end(r, s)
		}
	}
	return end(r, s)
}

// end returns when a stream ended, or received its last message if its runner was killed.
func end(r *ledger.Record, s ledger.Span) ledger.Instant {
	if s.To == 0 {
		return r.LastAt
	}
	return s.To
}

// shifts returns the distances to messages nearby with the same content.
func (l *Log) shifts(at int) []int {
	entries := l.Entries
	shifts := []int{}
	for _, step := range []int{-1, 1} {
		for i := at + step; i >= 0 && i < len(entries) && (i-at)*step <= mostShifts; i += step {
			if (entries[i].At - entries[at].At).Abs() > maxDelay {
				break
			}
			if entries[i].Print == entries[at].Print {
				shifts = append(shifts, i-at)
			}
		}
	}
	return shifts
}

// fitting returns those of the distances at which the messages have the same content, too.
func fitting(entries []ledger.Entry, shifts []int, at int) []int {
	kept := shifts[:0]
	for _, d := range shifts {
		if i := at + d; i >= 0 && i < len(entries) && entries[i].Print == entries[at].Print {
			kept = append(kept, d)
		}
	}
	return kept
}
