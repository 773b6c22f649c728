package ledger

import (
	"slices"
	"time"
)

// extras contains the fields that few clients need. Exported fields have the same meaning as in Record, except for
// OutageTime and Longest. Findings and Unlisted omit the findings of the counters.
type extras struct {
	Counts // counts that no counter has, such as heartbeats

	Findings   []Finding
	Unlisted   int
	Others     []EventCount
	Unanswered time.Duration
	LastOutage *Outage

	OutageTime time.Duration // sum of all outages, except a first connect without a failed attempt
	Longest    Outage        // longest of these outages
	Refusals   []Refusal
	Survived   int
	MaxOutage  time.Duration
	Outages    []Outage

	reset *idReset // the latest reset of the id, or nil

	latestOutage *Outage // the latest outage that ended with a reconnect
	replayable   uint64  // noops of that outage that the service may still replay
	replayedAt   Instant // arrival of the last replayed noop
}

func (l *Ledger) extras() *extras {
	if l.extra == nil {
		l.extra = new(extras)
	}
	return l.extra
}

// fill initializes a record with the fields of the ledger, except the counts of messages and the lists.
func (l *Ledger) fill(r *Record) {
	*r = Record{
		ID: l.id, State: l.state, Reason: l.end.reason, Attempts: int(l.attempts), Streams: int(l.stream.count), Connect: l.connect,
		OpenedAt: l.openedAt, ClosedAt: l.end.at, StreamTime: l.end.openTotal, OpenTime: l.end.open,
		MaxSilence: l.silences.longest, SilentFrom: l.silences.startedAt,
	}
	if l.connectIsPlain {
		r.OutageTime, r.Longest = l.connect, Outage{From: l.openedAt - l.connect, To: l.openedAt}
	}
	if x := l.extra; x != nil {
		r.OutageTime += x.OutageTime
		if x.Longest.To-x.Longest.From > r.Longest.To-r.Longest.From {
			r.Longest = x.Longest
		}
		r.Unlisted, r.Unanswered, r.Survived, r.MaxOutage = x.Unlisted, x.Unanswered, x.Survived, x.MaxOutage
	}
}

func (x *extras) fillLists(r *Record) {
	r.LastOutage = x.LastOutage
	r.Outages, r.Others, r.Refusals = slices.Clone(x.Outages), slices.Clone(x.Others), slices.Clone(x.Refusals)
}

func (l *Ledger) find(f Finding) {
	x := l.extras()
	x.Findings, x.Unlisted = appendFinding(x.Findings, x.Unlisted, f)
}

func appendFinding(list []Finding, unlisted int, f Finding) ([]Finding, int) {
	if len(list) >= maxFindings {
		return list, unlisted + 1
	}
	return append(list, f), unlisted
}
