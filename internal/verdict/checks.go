package verdict

import (
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
)

// Faults returns the checks for streams and their noops: every planned stream opened and stayed open to its end, and
// every noop arrived once, in order, intact and on time.
func (s *Streams) Faults() (out []Check) {
	c, n := s.Connections, s.Messages
	observed, completed := s.observed(), max(c.Completed-s.endedBefore, 0)
	begun, watched := observed-s.neverOpened, observed-c.Unwatched
	limit := func(clients int) string {
		if c.Unobserved > 0 {
			return fmt.Sprintf("%d observed", clients)
		}
		return fmt.Sprint(clients)
	}
	add := func(c Check, reasons []string) {
		c.Reasons = reasons
		out = append(out, c)
	}
	opened := Check{
		ID: CheckOpened, Name: "clients connected", Limit: limit(begun), Actual: fmt.Sprint(c.Opened), Pass: c.Opened == begun,
		Why: "clients that cannot connect receive nothing", loaded: true, faults: faults{unopened, uint64(max(begun-c.Opened, 0))},
	}.notJudgedIf(observed == 0, noneObserved)
	add(opened, append(s.delayedHeaders(), s.Sentences(ledger.KindRefused)...))
	openCheck := Check{
		ID: CheckHeld, Name: "streams open to the end", Limit: limit(watched), Actual: fmt.Sprint(completed), Pass: completed == watched,
		Why: "clients are disconnected, or streams do not end on request", weight: restsOn(s.proofs.unheld), loaded: true,
		faults: faults{unheld, uint64(max(watched-completed, 0))},
	}
	if c.Unfinished == 0 {
		openCheck = s.attribute(openCheck, ledger.KindDropped)
	}
	openCheck = openCheck.notJudgedIf(s.allEndedEarly(), allEarly).notJudgedIf(observed == 0, noneObserved)
	add(openCheck, s.compressedFirst(append(openCheck.Reasons, s.unheld()...)))
	if !s.m.Service.Counted() {
		return append(out, s.SilenceChecks()...)
	}
	if s.m.Service.ByInterval() {
		out = append(out, s.evenGaps())
	}
	noun := s.m.Service.Noun()
	noops := noun + "s "
	for _, f := range []struct {
		id           CheckID
		name, impact string
		count        uint64
		proof        bool
		loaded       bool
		kinds        []ledger.Kind
		explained    fault
	}{
		{CheckMissed, noops + "missed", "clients lose data", n.Missed, s.proofs.missed, true, []ledger.Kind{ledger.KindLost, ledger.KindUnsent, ledger.KindTail, ledger.KindRestarted}, unserved},
		{CheckDuplicated, noops + "duplicated", "clients receive a message twice", n.Duplicated, s.proofs.duplicated, false, []ledger.Kind{ledger.KindDuplicated}, noFault},
		{CheckReordered, noops + "reordered", "clients receive messages out of order", n.Reordered, s.proofs.reordered, false, []ledger.Kind{ledger.KindReordered}, noFault},
		{CheckCorrupted, noops + "corrupted", "clients receive wrong data", n.Corrupted, true, false, []ledger.Kind{ledger.KindCorrupted}, noFault},
	} {
		c := Check{ID: f.id, Name: f.name, Limit: "0", Actual: fmt.Sprint(f.count), Pass: f.count == 0, Why: f.impact, weight: restsOn(f.proof), loaded: f.loaded, faults: faults{f.explained, f.count}}
		if c.ID == CheckMissed {
			c = s.attribute(c, f.kinds...)
			c = c.notJudgedIf(n.Expected == 0, "no "+noun+" was expected")
		}
		if s.unreadable() {
			c = c.NotJudged("no message has a number at message.seq")
		} else if c.ID != CheckMissed {
			c = c.notJudgedIf(!s.hasMessages(), s.noneArrived())
		}
		reasons := append(c.Reasons, s.Sentences(f.kinds...)...)
		if c.ID == CheckMissed {
			reasons = s.compressedFirst(reasons)
		}
		add(c, reasons)
	}
	if s.m.Service.ByInterval() {
		out = append(out, s.floorCheck(), s.intervalCheck())
	}
	out = append(out, slices.Concat(s.PublishChecks(), s.Delivery(), s.Endings(), s.SilenceChecks())...)
	return append(append(out, s.lateCheck()), s.compressionChecks()...)
}

// hasMessages reports whether any message arrived, intact or not.
func (s *Streams) hasMessages() bool { return s.Messages.Received+s.Messages.Corrupted > 0 }

// noneArrived returns why checks for messages that arrived are not judged.
func (s *Streams) noneArrived() string { return "no " + s.m.Service.Noun() + " was received" }

// observed returns the number of clients that a shard lists. The check for complete data covers the others.
func (s *Streams) observed() int { return s.Connections.Planned - s.Connections.Unobserved }

// noneObserved states why checks for clients are not judged.
const noneObserved = "no client was observed"

// noneOpened states why checks for streams are not judged.
const noneOpened = "no stream was opened"

// lateCheck limits how many messages were late, if lateness is known.
func (s *Streams) lateCheck() Check {
	p, n, noops := s.m.Plan, s.Messages, s.m.Service.Noun()+"s "
	late := "any"
	if p.MaxLate >= 0 {
		late = fmt.Sprint(p.MaxLate)
	}
	pass := p.MaxLate < 0 || n.Late <= uint64(p.MaxLate)
	reasons := s.Sentences(ledger.KindLate)
	if text := s.Control.lateText(); text != "" {
		reasons = append([]string{text}, reasons...)
	}
	c := Check{
		ID: CheckLate, Name: fmt.Sprintf("%sover %d ms late", noops, p.LateMS), Limit: late, Actual: fmt.Sprint(n.Late),
		Pass: pass, Why: "clients receive data too late", weight: byClock, loaded: true, Reasons: s.compressedFirst(reasons),
		faults: faults{delayed, n.Late - min(n.Late, uint64(max(p.MaxLate, 0)))},
	}
	if !s.hasMessages() {
		return c.notJudgedIf(true, s.noneArrived())
	}
	if !s.m.Service.ByInterval() && !s.m.Service.Shared() && s.LatencyMS == nil && n.Received > 0 {
		if p.MaxLate < 0 {
			return c.NotJudged("no message contained its publish time (message.sentAt)")
		}
		c.Actual, c.Pass = "not known", false
		c.Reasons = []string{fmt.Sprintf("the lateness of messages is not known, because none contained its publish time (message.sentAt); the limit is %s (MAX_LATE)", late)}
		return c.Inconclusive()
	}
	return s.attribute(c)
}

// unheld describes the connections that were not open to the end.
func (s *Streams) unheld() []string {
	out := append(s.Sentences(ledger.KindDropped), s.unfinishedText()...)
	if n := s.Connections.Refused; len(out) == 0 && n > 0 {
		out = append(out, format.Plural(n, "client was", "clients were")+" refused")
	}
	return out
}

// floorCheck compares the counts with a product, as a cross-check by time alone.
func (s *Streams) floorCheck() Check {
	return Check{
		ID: CheckFloor, Name: "received at least open time ÷ interval", Limit: "every client", Actual: first(s.short, "yes"),
		Pass: len(s.short) == 0, Why: "cross-check by time alone", weight: byClock,
		Reasons: s.short,
	}.notJudgedIf(s.floors == 0, "no stream stayed open until its end was requested")
}
