package ledger

import (
	"slices"
	"strings"
	"time"
)

// An Outage is a time without a stream. It starts with the first dial or the end of a lost stream. It ends with the
// headers of the next stream. If no stream followed, it ends with the request to end or with the last attempt.
type Outage struct {
	From     Instant   `json:"from_ns"`
	To       Instant   `json:"to_ns"`
	Refusals []Refusal `json:"refused,omitempty"` // failed attempts
	// Replayed is the number of noops that the service replayed right after the headers of the next stream.
	Replayed uint64 `json:"replayed,omitempty"`
	// Planned reports whether the service ended the stream after its lifetime, or the client disconnected on purpose.
	Planned bool `json:"planned,omitempty"`
	// Cut reports whether the client disconnected on purpose.
	Cut bool `json:"cut,omitempty"`
	// Requested is the reconnection time that the service had requested, or 0 if it had requested none.
	Requested time.Duration `json:"requested_ns,omitempty"`
}

// A Refusal counts the attempts to connect that failed for one reason.
type Refusal struct {
	Reason string  `json:"reason"` // the reason of Closed, without details
	Count  int     `json:"count"`
	First  Instant `json:"first_ns"`
	Last   Instant `json:"last_ns"`
}

// The reasons of attempts that failed because the runner, not the service, had no port, descriptor or IPv6 address.
const (
	ReasonNoPort       = "no local port left"
	ReasonNoDescriptor = "no file descriptor left"
	ReasonNoIPv6       = "no IPv6 address"
)

// AreLocal reports whether at least one attempt failed, and all failed attempts had one of the reasons ReasonNoPort,
// ReasonNoDescriptor and ReasonNoIPv6.
func AreLocal(refusals []Refusal) bool {
	return len(refusals) > 0 && !slices.ContainsFunc(refusals, func(r Refusal) bool {
		return r.Reason != ReasonNoPort && r.Reason != ReasonNoDescriptor && r.Reason != ReasonNoIPv6
	})
}

// OtherReasons replaces all reasons beyond maxReasons, which limits the memory.
const OtherReasons = "other reasons"

func countRefusal(list []Refusal, reason string, at Instant) []Refusal {
	if end := strings.IndexAny(reason, ":("); end > 0 {
		reason = strings.TrimSpace(reason[:end])
	}
	same := func(r Refusal) bool { return r.Reason == reason }
	i := slices.IndexFunc(list, same)
	if i < 0 && len(list) >= maxReasons {
		reason = OtherReasons
		i = slices.IndexFunc(list, same)
	}
	if i < 0 {
		list = append(list, Refusal{Reason: reason, First: at})
		i = len(list) - 1
	}
	list[i].Count++
	list[i].Last = at
	return list
}

func (l *Ledger) connected(at Instant, connect time.Duration) {
	l.connect, l.openedAt = connect, at
	if o := l.outage; o != nil && o.Refusals == nil && o.From == l.dials.first && connect > 0 {
		l.connectIsPlain, l.outage = true, nil
	}
	l.endOutage(at)
}

// endOutage ends the present outage and returns it, or nil if the client is in none.
func (l *Ledger) endOutage(at Instant) (o *Outage) {
	if o, l.outage = l.outage, nil; o == nil {
		return nil
	}
	o.To = at
	if duration := o.To - o.From; duration > 0 {
		x := l.extras()
		x.OutageTime += duration
		if duration > x.Longest.To-x.Longest.From {
			x.Longest = *o
		}
	}
	return o
}

func (l *Ledger) reconnected(at Instant, o *Outage) {
	x := l.extras()
	x.Survived++
	x.MaxOutage = max(x.MaxOutage, o.To-o.From)
	if len(x.Outages) < maxOutages {
		x.Outages = append(x.Outages, *o)
	}
	x.latestOutage, x.replayedAt = o, at
	if l.byNumber != nil {
		x.replayable = l.byNumber.missedSlots(at)
	}
}

// replayed counts a noop as replayed after the last outage. A noop that arrives too late ends the replay.
//
//go:noinline
func (l *Ledger) replayed(at Instant, counted bool) {
	x := l.extra
	if at-x.replayedAt > min(l.stream.cfg.Interval/50, 50*time.Millisecond) {
		x.replayable = 0
		return
	}
	x.replayedAt = at
	if counted {
		x.replayable--
		x.latestOutage.Replayed++
		if x.Survived == len(x.Outages) { // the outage is listed
			x.Outages[len(x.Outages)-1].Replayed++
		}
	}
}

// DelayRequested records the reconnection time that the service had requested before the present outage.
func (l *Ledger) DelayRequested(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outage != nil {
		l.outage.Requested = d
	}
}

func (l *Ledger) attemptFailed(at Instant, reason string) {
	if reason == ReasonClient || reason == ReasonInterrupted {
		return
	}
	l.stream.lifetimeOver = l.stream.lifetimeOver && l.stream.closeRequestedAt != 0
	x := l.extras()
	x.Refusals = countRefusal(x.Refusals, reason, at)
	if l.outage != nil {
		l.outage.Refusals = countRefusal(l.outage.Refusals, reason, at)
	}
}

// refuse sets the state of a client without a stream. A refusal by the service takes precedence as the reason if the
// client canceled its last attempt.
func (l *Ledger) refuse(at Instant, reason string) {
	byClient := reason == ReasonClient || reason == ReasonInterrupted
	switch {
	case byClient && l.extra != nil && len(l.extra.Refusals) > 0:
		reason = slices.MaxFunc(l.extra.Refusals, func(a, b Refusal) int { return int(a.Last - b.Last) }).Reason
	case reason == ReasonClient && l.stream.closeRequestedAt != 0:
		reason = ReasonNoAnswer
	}
	l.endOutage(at)
	if l.state == Refused { // the client made another attempt after the request to end
		return
	}
	l.state = Refused
	l.end.reason, l.end.at = reason, at
	l.connect = at - l.dials.first
	l.find(Finding{Kind: KindRefused, At: at, Note: reason})
}
