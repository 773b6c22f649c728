package main

import (
	"math"
	"strings"
	"time"

	cuts "github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// streamMargin is the margin that docs/accounting.md defines. A message is expected on a stream if it was published at
// least streamMargin after the start and acknowledged at least streamMargin before the end.
const streamMargin = time.Second

// hubSlack is the maximum difference between the times of client and hub.
const hubSlack = 300 * time.Millisecond

// possibleOutcomes are the outcomes that follow from the record of a hub.
type possibleOutcomes struct{ mustFail, mayFail, mustBeInvalid, mayBeInvalid bool }

func (o *possibleOutcomes) list() []verdict.Outcome {
	switch {
	case o.mustBeInvalid && !o.mayFail:
		return []verdict.Outcome{verdict.Invalid}
	case o.mustFail:
		return fails
	case o.mustBeInvalid:
		return []verdict.Outcome{verdict.Invalid, verdict.Fail}
	}
	out := []verdict.Outcome{verdict.Pass}
	if o.mayFail {
		out = append(out, verdict.Fail)
	}
	if o.mayBeInvalid {
		out = append(out, verdict.Invalid)
	}
	return out
}

func (sc *scenario) expectHub(h *hub) *verdictExpectation {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	e := &verdictExpectation{Counts: counts{"late": anyCount}, Clients: map[string]bool{}, Unmet: sc.Unmet}
	if sc.Plan.MaxLate >= 0 {
		e.Counts["late"] = span{}
	}
	e.Counts["undetectable"] = span{}
	o := possibleOutcomes{mustFail: sc.Fails, mayFail: sc.Fails}
	for _, t := range h.topics {
		for _, m := range t.messages {
			e.Counts.add(publishOutcome(m, h.Status), exactCount(1))
			o.mustFail = o.mustFail || m.status != h.Status
		}
	}
	for n := range sc.Plan.Connections {
		if d := h.byID[sc.Plan.id(n)]; d != nil { // a client that never connected makes the counts differ
			sc.addClient(e, &o, h, d)
		}
	}
	switch { // Min is 0 if each client may have reconnected before its first message
	case e.Counts["id resets"].Min > 0:
		e.Unmet = []verdict.CheckID{verdict.CheckIDReset}
	case e.Counts["no ids"].Min > 0:
		e.Unmet = []verdict.CheckID{verdict.CheckNoID}
	}
	sc.expectBreaks(e)
	if !h.HasMarker { // each message could be from another publisher
		e.Counts.add("undetectable", e.Counts["received"])
	}
	e.Outcomes = o.list()
	return e
}

// faults are the counts that are 0 in a run without faults.
var faults = []string{"missed", "duplicated", "reordered", "corrupted", "late", "dropped", "refused", "unfinished", "announced", "misrouted", "id resets"}

func (sc *scenario) addClient(e *verdictExpectation, o *possibleOutcomes, h *hub, d *hubClient) {
	sums := sc.expectHubClient(h, d)
	confirmed := 0
	for _, m := range d.topic.messages {
		confirmed += btoi(m.status == h.Status)
	}
	if len(d.Spans) > 0 { // a run is invalid if fewer than half of the messages were checked on a client
		o.mustBeInvalid = o.mustBeInvalid || 2*sums["checked"].Max < confirmed
		o.mayBeInvalid = o.mayBeInvalid || 2*sums["checked"].Min < confirmed
	}
	mustFail, mayFail, mustName := false, false, false
	for _, name := range faults {
		count := sums[name]
		if name == "late" && sc.Plan.MaxLate < 0 {
			continue
		}
		if name == "announced" && sc.HubFault.Allowed { // the gap is listed, but is not a fault
			mustName = mustName || count.Min > 0
			e.Clients[d.ID] = mustName
			continue
		}
		mustFail, mayFail = mustFail || count.Min > 0, mayFail || count.Max > 0
		// Unfinished and late clients are counted, but not named.
		mustName = mustName || count.Min > 0 && name != "unfinished" && name != "late"
	}
	noID := sums["no ids"]
	if mayFail || noID.Max > 0 || sc.Fails && h.fault.Matches(d.ID) { // a reason may name the client
		e.Clients[d.ID] = mustName || noID.Min > 0
	}
	o.mustFail, o.mayFail = o.mustFail || mustFail, o.mayFail || mayFail
	o.mustBeInvalid = o.mustBeInvalid || noID.Min > 0
	o.mayBeInvalid = o.mayBeInvalid || noID.Max > 0 || sums["undetectable"].Max > 0
	for name, count := range sums {
		if name != "late" || sc.Plan.MaxLate >= 0 {
			e.Counts.add(name, count)
		}
	}
}

// publishOutcome returns the name of the count that includes a message. ok is the status that confirms a message.
func publishOutcome(m *message, ok int) string {
	switch m.status {
	case 0:
		return "messages open"
	case ok:
		return "messages confirmed"
	}
	return "messages refused"
}

func (sc *scenario) expectHubClient(h *hub, d *hubClient) counts {
	c := counts{}
	if len(d.Spans) == 0 {
		name := "refused"
		if h.fault.Join != 0 && d.joinRefused {
			name = "dropped"
		}
		c.add(name, exactCount(1))
		for _, m := range d.topic.messages {
			c.add("not expected", exactCount(btoi(m.status == h.Status)))
		}
		return c
	}
	c.add("reconnected", reconnectCount(&d.Client, d.Last().To))
	if h.fault.NeverEnds && h.fault.Matches(d.ID) {
		c.add("unfinished", exactCount(1))
	}
	c.add("dropped", sc.expectHubDrop(h, d))
	arrivals := sc.expectFrames(h, d, c)
	sc.expectIDs(d, c)
	for _, m := range d.topic.messages {
		if m.status != h.Status {
			continue
		}
		missed, undetectable := expectMessage(d, m)
		if last := d.Last(); sc.Plan.Reconnect && sc.Hub.Resume != "none" && last.EndReason != fakeservice.EndRequested && last.To.Sub(m.receivedAt) < streamMargin+hubSlack {
			// A client that was disconnected at the end would have requested the message at a reconnect.
			undetectable.Max = max(undetectable.Max, btoi(d.firstRequestAt.Add(sc.Plan.hold()).Sub(last.To) > streamMargin-2*hubSlack))
		}
		if missed.Min == 0 && h.Order == "" {
			missed = sc.boundLoss(d, m, missed)
		}
		c.add("checked", span{missed.Min, max(missed.Max, undetectable.Max)})
		if certain, arrived := arrivals[m.number]; arrived {
			if !certain { // if the client did not read the message, its loss may be undetectable
				c.add("not expected", span{0, 1})
				c.add("undetectable", span{0, undetectable.Max})
			}
			continue
		}
		stream, dropped := d.dropped[m.number]
		if dropped && sc.Suite == "resume" {
			d.broken[stream] = true
			c.add("cuts lost", exactCount(1))
		}
		if dropped && sc.HubFault.Allowed {
			continue
		}
		c.add("missed", missed)
		c.add("undetectable", undetectable)
		c.add("not expected", span{btoi(missed.Max+undetectable.Max == 0), 1 - missed.Min})
	}
	if sc.Suite == "resume" {
		delete(d.broken, 0)
		c.add("cuts broken", exactCount(len(d.broken)))
		c.add("cuts duplicated", c["duplicated"])
		c.add("cuts announced", c["announced"])
	}
	return c
}

// expectHubDrop returns 1 for a client that was without a stream at the end of the run for longer than allowed.
func (sc *scenario) expectHubDrop(h *hub, d *hubClient) span {
	last := d.Last()
	remaining := h.holdEnd(d).Sub(last.To)
	switch {
	case last.EndReason == fakeservice.EndInOrder || last.EndReason == fakeservice.EndReset:
		switch {
		case !sc.Plan.Reconnect:
			return exactCount(1)
		case sc.reconnectsOnce(d.ID):
			return span{btoi(remaining > time.Duration(sc.Hub.Retry)*time.Millisecond+2*hubSlack), 1}
		}
		return sc.tooLong(remaining)
	case last.EndReason == fakeservice.EndRequested:
		return span{}
	}
	dropped := span{btoi(remaining > 2*hubSlack), btoi(remaining > hubSlack/3)}
	if len(d.Spans) > 1 && last.To.Sub(last.From) < streamMargin {
		dropped.Min = 0 // the run may have ended before the client received the headers of this stream
	}
	return dropped
}

// holdEnd returns the time at which a client should have closed its stream. If the load generator connected late, all
// clients close their streams up to a second before the time that follows from their first requests.
func (h *hub) holdEnd(d *hubClient) time.Time {
	planned := d.firstRequestAt.Add(h.plan.hold())
	end := planned.Add(-time.Second)
	for _, c := range h.byID {
		if len(c.Spans) > 0 && c.Last().EndReason == fakeservice.EndClient && c.Last().To.After(end) {
			end = c.Last().To
		}
	}
	if end.After(planned) {
		return planned
	}
	return end
}

// reconnectsOnce reports whether a client tries only once to reconnect, because it has no valid token.
func (sc *scenario) reconnectsOnce(id string) bool {
	return sc.Hub.TTL > 0 && (sc.Hub.Token == "once" || sc.Hub.Token == "fails" || sc.HubFault.TokenRefused && sc.HubFault.Matches(id))
}

// isImpossible reports whether a client can detect at once that no message of the run has that number. The client
// counts such a message as corrupted, and assumes that the next expected message was replaced.
func (sc *scenario) isImpossible(number int) bool {
	highest := math.Ceil(sc.Hub.Rate*sc.Plan.hold().Seconds()/float64(sc.Hub.Topics)) + 1
	return number <= 0 || float64(number) > highest
}

// mustHaveRead reports whether a client certainly read a frame that was written to a stream at the given time.
func mustHaveRead(s fakeservice.OpenSpan, at time.Time) bool {
	return s.Reported || s.EndReason == fakeservice.EndInOrder || s.To.Sub(at) > hubSlack
}

// expectFrames counts the frames written to a client, and sets d.broken. The keys of the result are the numbers that
// the client read; an impossible number is replaced by the published one. The value false means that the client may not
// have read the message.
func (sc *scenario) expectFrames(h *hub, d *hubClient, c counts) map[int]bool {
	d.broken = map[int]bool{}
	arrivals, numbers, uncertainNumbers := map[int]bool{}, map[int]bool{}, map[int]bool{}
	highest := 0
	for _, f := range d.frames {
		count := exactCount(1)
		certain := !f.uncertain && mustHaveRead(d.Spans[f.span], f.at)
		if !certain {
			count = span{0, 1}
		}
		switch f.kind {
		case frameForeign:
			c.add("foreign", count)
		case frameOtherTopic:
			c.add("misrouted", count)
		case frameHeartbeat:
			if h.Heartbeat == "line" { // the line may be part of the next block
				count.Min = 0
			}
			c.add("heartbeats", count)
		case frameGap:
			c.add("announced", count)
			d.broken[f.span] = true
		case frameMessage:
			switch {
			case sc.isImpossible(f.seq):
				c.add("corrupted", count)
				arrivals[f.number] = true
				continue
			case f.seq > len(d.topic.messages):
				c.add("corrupted", count)
			case numbers[f.seq]:
				if uncertainNumbers[f.seq] {
					count.Min = 0
				}
				arrivals[f.seq] = arrivals[f.seq] || certain
				c.add(map[bool]string{true: "duplicated", false: "repeated"}[h.Delivery == ""], count)
				if h.Delivery == "" {
					d.broken[f.span] = true
				}
			default:
				c.add("received", count)
				if f.seq < highest && h.Order == "" {
					c.add("reordered", count)
				}
				numbers[f.seq], arrivals[f.seq], uncertainNumbers[f.seq] = true, certain, !certain
				if h.HasTime {
					c.add("late", longer(f.at.Sub(f.receivedAt), sc.Plan.lateLimit(), hubSlack))
				}
			}
			highest = max(highest, f.seq)
		}
	}
	return arrivals
}

// expectMessage returns the counts for a message that does not arrive. Both are 0 if the message was not expected. The
// loss is undetectable if the hub acknowledged the message just before the end of the stream, or later.
func expectMessage(d *hubClient, m *message) (missed, undetectable span) {
	for _, s := range d.expectedTimes(streamMargin + hubSlack) {
		received, acknowledged := m.receivedAt.Sub(s.From)-streamMargin, s.To.Sub(m.answeredAt)-streamMargin
		missed.Min = max(missed.Min, btoi(received > hubSlack && acknowledged > hubSlack))
	}
	for _, s := range d.expectedTimes(streamMargin - hubSlack) {
		received, remaining, acknowledged := m.receivedAt.Sub(s.From)-streamMargin, s.To.Sub(m.receivedAt)-streamMargin, s.To.Sub(m.answeredAt)-streamMargin
		missed.Max = max(missed.Max, btoi(received > -hubSlack && acknowledged > -hubSlack))
		undetectable.Max = max(undetectable.Max, btoi(received > -hubSlack && remaining > -hubSlack && acknowledged < hubSlack))
	}
	return missed, undetectable
}

// boundLoss returns the count of a lost message. It is 1 if an earlier and a later message arrived on the same stream,
// or on consecutive streams that each resume the previous one. It is 0 or 1 after a corrupted number. Otherwise it is
// the given count, with a maximum of 1 if an earlier message arrived and the client may have read a later one.
func (sc *scenario) boundLoss(d *hubClient, m *message, count span) span {
	group, earlier := -1, false
	arrived := map[int]bool{}
	for _, f := range d.frames {
		if !d.Spans[f.span].Resumed && f.span != group {
			group, earlier = f.span, false
		} else if f.span > group {
			group = f.span
		}
		if f.kind != frameMessage || sc.isImpossible(f.seq) || arrived[f.seq] {
			continue
		}
		arrived[f.seq] = true
		switch {
		case f.seq == m.number: // a copy of the message itself
		case f.seq > len(d.topic.messages): // the number is corrupted
			return span{0, 1}
		case f.seq < m.number:
			earlier = true
		case earlier && mustHaveRead(d.Spans[f.span], f.at):
			count = exactCount(1)
		case earlier:
			count.Max = 1
		}
	}
	return count
}

// expectedTimes returns the spans in which messages were expected. Messages between two streams are expected if the
// second stream resumes the first. If the second is the client's last stream, it must also have been open for atLeast.
func (d *hubClient) expectedTimes(atLeast time.Duration) (out []fakeservice.OpenSpan) {
	for i, s := range d.Spans {
		if last := len(out) - 1; !s.Resumed || last < 0 {
			out = append(out, s)
		} else if i < len(d.Spans)-1 || s.To.Sub(s.From) >= atLeast {
			out[last].To = s.To
		}
	}
	return out
}

// expectBreaks adds the expected results for cuts and actions.
func (sc *scenario) expectBreaks(e *verdictExpectation) {
	set := func(name string, s span) { e.Counts[name] = s }
	switch sc.Family {
	case "resume":
		if sc.HubFault.Action != "" { // messages may also have been lost at a disconnect
			set("cuts lost", anyCount)
			set("cuts broken", anyCount)
		}
		for _, name := range []string{"lost", "duplicated", "announced", "broken", "not made"} {
			e.Counts.add("cuts "+name, span{})
		}
		if sc.HubFault.StreamsOf != "" {
			for _, kind := range cuts.CutKinds() {
				if planned := strings.Contains(sc.HubFault.StreamsOf, kind) || sc.HubFault.StreamsOf == "closed" && (kind == cuts.CutFIN || kind == cuts.CutRST); !planned {
					set("cuts broken by "+kind, span{})
				}
			}
		}
	case "action":
		set("action: streams lost", exactCount(sc.Plan.Connections))
		set("action: missed", e.Counts["missed"])
		set("action: not resumed", e.Counts["not expected"])
		set("action: duplicated", e.Counts["duplicated"])
		set("action: streams not reconnected", e.Counts["dropped"])
	}
}
