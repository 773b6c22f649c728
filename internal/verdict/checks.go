package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
)

// FaultChecks returns the checks that clients connect, that streams stay open to the end, and that messages arrive
// once, in order, intact and on time.
func (s *Streams) FaultChecks() (out []Check) {
	c, n := s.Connections, s.Messages
	observed, completed := s.observedClients(), max(c.Completed-s.replacedClients, 0)
	started, watched := observed-s.streamlessClients, observed-c.Unwatched
	limit := func(clients int) string {
		switch {
		case observed == 0 && c.Unobserved > 0:
			return "all clients"
		case c.Unobserved > 0:
			return fmt.Sprintf("%d observed %s", clients, format.Form(clients, "client", "clients"))
		}
		return fmt.Sprint(clients)
	}
	add := func(c Check, reasons []string) {
		c.Reasons = reasons
		out = append(out, c)
	}
	opened := Check{
		ID: CheckOpened, Name: "clients connected", Limit: limit(started), Actual: fmt.Sprint(c.Opened), Pass: c.Opened == started,
		Why: "clients that cannot connect receive nothing", loadDependent: true, faults: faults{connectTimeout, uint64(max(started-c.Opened, 0))},
	}.notJudgedIf(observed == 0, reasonUnobserved)
	add(opened, append(s.delayedHeaders(), s.Sentences(ledger.KindRefused)...))
	actual := fmt.Sprint(completed)
	if c.Reconnecting > 0 {
		actual = fmt.Sprintf("%d, and %d reconnecting", completed-c.Reconnecting, c.Reconnecting)
	}
	openCheck := Check{
		ID: CheckOpenToEnd, Name: "streams open to the end", Limit: limit(cmp.Or(watched, observed)), Actual: actual, Pass: completed == watched,
		Why: "clients are disconnected, or streams do not end on request", weight: weightOfFault(s.proofs.earlyEnd), loadDependent: true,
		faults: faults{earlyEnd, uint64(max(watched-completed, 0))},
	}
	if c.Unfinished == 0 {
		openCheck = s.attribute(openCheck, ledger.KindDropped)
	}
	openCheck = openCheck.notJudgedIf(s.allEndedEarly(), reasonEndedEarly).notJudgedIf(observed == 0, reasonUnobserved)
	add(openCheck, s.addCompressionReason(append(openCheck.Reasons, s.earlyEnds()...)))
	out = append(out, s.portsCheck()...)
	if !s.m.Service.CountsMessages() {
		return append(out, s.silenceChecks()...)
	}
	if s.m.Service.HasInterval() {
		out = append(out, s.scheduleCheck())
	}
	noun := s.m.Service.Noun()
	nouns := noun + "s"
	for _, f := range []struct {
		id            CheckID
		name, impact  string
		count         uint64
		proof         bool
		loadDependent bool
		kinds         []ledger.Kind
		fault         faultKind
	}{
		{CheckMissed, nouns + " missed", "clients lose data", n.Missed, s.proofs.missed, true, []ledger.Kind{ledger.KindLost, ledger.KindUnsent, ledger.KindTail, ledger.KindRestarted}, missedMessage},
		{CheckDuplicated, nouns + " duplicated", "clients receive a message twice", n.Duplicated, s.proofs.duplicated, false, []ledger.Kind{ledger.KindDuplicated}, noFault},
		{CheckReordered, nouns + " reordered", "clients receive messages out of order", n.Reordered, s.proofs.reordered, false, []ledger.Kind{ledger.KindReordered}, noFault},
		{CheckCorrupted, nouns + " corrupted", "clients receive wrong data", n.Corrupted, true, false, []ledger.Kind{ledger.KindCorrupted}, noFault},
	} {
		c := Check{ID: f.id, Name: f.name, Limit: "0", Actual: fmt.Sprint(f.count), Pass: f.count == 0, Why: f.impact, weight: weightOfFault(f.proof), loadDependent: f.loadDependent, faults: faults{f.fault, f.count}}
		if c.ID == CheckMissed {
			c = s.attribute(c, f.kinds...)
			c = c.notJudgedIf(n.Expected == 0, "no "+noun+" was expected")
		}
		if s.lacksNumbers() {
			c = c.NotJudged("no message has a number at message.seq")
		} else if c.ID != CheckMissed {
			c = c.notJudgedIf(!s.hasMessages(), s.reasonNoMessage())
		}
		reasons := append(c.Reasons, s.Sentences(f.kinds...)...)
		if c.ID == CheckMissed {
			reasons = s.addCompressionReason(reasons)
		}
		add(c, reasons)
	}
	if s.m.Service.HasInterval() {
		out = append(out, s.floorCheck(), s.intervalCheck())
	}
	out = append(out, slices.Concat(s.publishChecks(), s.deliveryChecks(), s.endingChecks(), s.silenceChecks())...)
	return append(append(out, s.lateCheck()), s.compressionChecks()...)
}

func (s *Streams) hasMessages() bool { return s.Messages.Received+s.Messages.Corrupted > 0 }

func (s *Streams) reasonNoMessage() string { return "no " + s.m.Service.Noun() + " was received" }

func (s *Streams) observedClients() int { return s.Connections.Planned - s.Connections.Unobserved }

const reasonUnobserved = "no client was observed"

const reasonNoStream = "no stream was opened"

// NoLimit is the Limit of a check whose setting allows any value.
const NoLimit = "no limit"

// lateCheck returns the check of MAX_LATE. With a limit, unknown lateness turns a pass into invalid.
func (s *Streams) lateCheck() Check {
	p, n := s.m.Plan, s.Messages
	limit := NoLimit
	if p.MaxLate >= 0 {
		limit = fmt.Sprint(p.MaxLate)
	}
	pass := p.MaxLate < 0 || n.Late <= uint64(p.MaxLate)
	reasons := s.Sentences(ledger.KindLate)
	if text := s.Control.lateText(); text != "" {
		reasons = append([]string{text}, reasons...)
	}
	c := Check{
		ID: CheckLate, Name: fmt.Sprintf("%ss over %d ms late", s.m.Service.Noun(), p.LateMS), Limit: limit, Actual: fmt.Sprint(n.Late),
		Pass: pass, Why: "clients receive data too late", weight: byClock, loadDependent: true, Reasons: s.addCompressionReason(reasons),
		faults: faults{lateMessage, n.Late - min(n.Late, uint64(max(p.MaxLate, 0)))},
	}
	if !s.hasMessages() {
		return c.notJudgedIf(true, s.reasonNoMessage())
	}
	if !s.m.Service.HasInterval() && !s.m.Service.ComparesClients() && s.LatencyMS == nil && n.Received > 0 {
		if p.MaxLate < 0 {
			return c.NotJudged("no message contained its publish time (message.sentAt)")
		}
		c.Actual, c.Pass = "not known", false
		c.Reasons = []string{fmt.Sprintf("the lateness of messages is unknown, because none contained its publish time (message.sentAt); the limit is %s (%s)", limit, cmp.Or(s.LateSetting, "MAX_LATE"))}
		return c.AsDoubt()
	}
	return s.attribute(c)
}

func (s *Streams) earlyEnds() []string {
	out := append(s.Sentences(ledger.KindDropped), s.unfinishedText()...)
	if n := s.Connections.Refused; len(out) == 0 && n > 0 {
		out = append(out, format.Plural(n, "client was", "clients were")+" refused")
	}
	return out
}

// floorCheck returns the check that the ledger of each client expected at least as many messages as intervals passed.
// It uses time alone, as a cross-check of the ledgers.
func (s *Streams) floorCheck() Check {
	actual := "at least that many"
	if s.floorStreams < s.Connections.Planned {
		actual += fmt.Sprintf(" for the %s with one stream open to the end", format.Plural(s.floorStreams, "client", "clients"))
	}
	return Check{
		ID: CheckFloor, Name: s.m.Service.Noun() + "s expected per client", Limit: fmt.Sprintf("at least (open time − %s) ÷ interval, rounded down", format.Duration(floorTolerance(&s.m.Plan))), Actual: firstText(s.floorTexts, actual),
		Pass: len(s.floorTexts) == 0, Why: "if too few messages are expected, losses are not detected", weight: byClock,
		Reasons: s.floorTexts,
	}.notJudgedIf(s.floorStreams == 0, "no client kept one stream open to the end")
}
