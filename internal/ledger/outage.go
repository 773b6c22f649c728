package ledger

import (
	"slices"
	"strings"
	"time"
)

// An Outage is a time without a stream: from the first dial, or from the end of a stream that was
// lost, to the headers of the next stream, or to the request for the end where none followed.
type Outage struct {
	From     Instant   `json:"from_ns"`
	To       Instant   `json:"to_ns"`
	Refusals []Refusal `json:"refused,omitempty"` // the attempts that failed meanwhile
	// Resumed is how many numbered noops came right behind the headers of the next stream: the service had kept them.
	Resumed uint64 `json:"resumed,omitempty"`
	// Planned: the service ended the stream on purpose, after the lifetime that it gives it, or the client cut it.
	Planned bool `json:"planned,omitempty"`
	// Cut: it was the client.
	Cut bool `json:"cut,omitempty"`
}

// A Refusal counts the attempts to connect that failed for one reason.
type Refusal struct {
	Reason string  `json:"reason"` // that of Closed, without the text after it
	Count  int     `json:"count"`
	First  Instant `json:"first_ns"`
	Last   Instant `json:"last_ns"`
}

// OtherReasons stands for all reasons beyond maxReasons, so that a server cannot fill the memory.
const OtherReasons = "other reasons"

// countRefusal adds an attempt that failed at the instant at.
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

// leave begins an outage.
func (l *Ledger) leave(at Instant) { l.outage = &Outage{From: at} }

// comeBack ends the outage, if there is one: a stream opened, or none will follow.
func (l *Ledger) comeBack(at Instant) (o *Outage) {
	if o, l.outage = l.outage, nil; o != nil {
		o.To = at
		l.rec.wasAway(o)
	}
	return o
}

// cameBack notes that a stream opened after an outage.
func (l *Ledger) cameBack(at Instant, o *Outage) {
	l.rec.survived(o)
	rare := l.rec.rare
	rare.latest, rare.replayedAt = o, at
	if l.byNumber != nil {
		rare.kept = l.byNumber.missedSlots(at)
	}
}

// atOnce is how soon after the headers, or after the one before, a noop comes that the service had kept for the client.
func (l *Ledger) atOnce() Instant { return min(l.cfg.Interval/50, 50*time.Millisecond) }

// replayed counts a noop to the last outage, unless the service has sent all that it had kept.
//
//go:noinline
func (l *Ledger) replayed(at Instant, counted bool) {
	rare := l.rec.rare
	if at-rare.replayedAt > l.atOnce() {
		rare.kept = 0
		return
	}
	rare.replayedAt = at
	if counted {
		rare.kept--
		rare.latest.Resumed++
		if rare.Survived == len(rare.Outages) { // it is listed
			rare.Outages[len(rare.Outages)-1].Resumed++
		}
	}
}

// attemptFailed counts a failed attempt, unless the client itself gave it up.
func (l *Ledger) attemptFailed(at Instant, reason string) {
	if reason == ReasonClient || reason == ReasonInterrupted {
		return
	}
	l.served = l.served && l.closeRequestedAt != 0
	rare := l.rec.rarely()
	rare.Refusals = countRefusal(rare.Refusals, reason, at)
	if l.outage != nil {
		l.outage.Refusals = countRefusal(l.outage.Refusals, reason, at)
	}
}

// refuse concludes that no stream was ever opened. If the service refused an attempt, that is the reason,
// even if the client gave up the last one itself.
func (l *Ledger) refuse(at Instant, reason string) {
	switch {
	case len(l.rec.rarities().Refusals) > 0 && (reason == ReasonClient || reason == ReasonInterrupted):
		reason = l.lastRefusal()
	case reason == ReasonClient && l.closeRequestedAt != 0:
		reason = ReasonNoAnswer
	}
	l.comeBack(at)
	if l.rec.State() == Refused { // the client tried once more after the request to close
		return
	}
	l.rec.become(Refused)
	past := l.rec.ended()
	past.Reason, past.ClosedAt = reason, at
	l.rec.rarely().Connect = at - l.dials.begun()
	l.rec.find(Finding{Kind: KindRefused, At: at, Note: reason})
}

func (l *Ledger) lastRefusal() string {
	last := slices.MaxFunc(l.rec.rare.Refusals, func(a, b Refusal) int { return int(a.Last - b.Last) })
	return last.Reason
}
