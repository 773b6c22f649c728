package main

import (
	"math"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// streamMargin is the margin of docs/services.md: a message that is published within it after the start of a stream, or
// before its end, is not expected on it.
const streamMargin = time.Second

// hubSlack is the maximum difference between the times of client and hub.
const hubSlack = 300 * time.Millisecond

// expectHub returns the expected verdict of a run of a hub.
func (sc *scenario) expectHub(h *hub) *verdictExpectation {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	e := &verdictExpectation{Counts: counts{"late": anyCount}, Devices: map[string]bool{}, Broken: sc.Broken}
	if sc.Plan.MaxLate >= 0 {
		e.Counts["late"] = span{}
	}
	e.Counts["could_hide"] = span{}
	sure, uncertain, hidden, vain := sc.Fails, sc.Fails, false, false // vain: the run proves nothing
	for _, t := range h.topics {
		for _, l := range t.messages {
			e.Counts.add(answerTo(l, h.Status), exactCount(1))
			sure = sure || l.status != h.Status
		}
	}
	for n := range sc.Plan.Connections {
		d := h.byID[sc.Plan.id(n)]
		if d == nil {
			continue // the counts will show it
		}
		sums := sc.expectClient(h, d)
		named, surely, listed := false, false, false
		confirmed := 0
		for _, l := range d.topic.messages {
			confirmed += btoi(l.status == h.Status)
		}
		if len(d.Spans) > 0 {
			vain, hidden = vain || 2*sums["checked"].Max < confirmed, hidden || 2*sums["checked"].Min < confirmed
		}
		for _, name := range faults {
			one := sums[name]
			if name == "late" && sc.Plan.MaxLate < 0 {
				continue
			}
			if name == "announced" && sc.HubFault.Allowed { // the gap is listed, but is not a fault
				listed = listed || one.Min > 0
				e.Devices[d.ID] = listed
				continue
			}
			named, surely = named || one.Max > 0, surely || one.Min > 0
			listed = listed || one.Min > 0 && name != "unfinished" && name != "late" // these are counted, but not named
		}
		noID := sums["no ids"]
		vain, hidden = vain || noID.Min > 0, hidden || noID.Max > 0
		if named || noID.Max > 0 || sc.Fails && h.fault.Matches(d.ID) { // a reason may name the client
			e.Devices[d.ID] = listed || noID.Min > 0
		}
		sure, uncertain, hidden = sure || surely, uncertain || named, hidden || sums["could_hide"].Max > 0
		for name, one := range sums {
			if name != "late" || sc.Plan.MaxLate >= 0 {
				e.Counts.add(name, one)
			}
		}
	}
	switch { // a restart may precede the first message
	case e.Counts["id resets"].Min > 0:
		e.Broken = []verdict.CheckID{verdict.CheckIDReset}
	case e.Counts["no ids"].Min > 0:
		e.Broken = []verdict.CheckID{verdict.CheckNoID}
	}
	sc.expectBreaks(e)
	if !h.Marked { // a message of another publisher may replace each
		e.Counts.add("could_hide", e.Counts["received"])
	}
	switch {
	case sure:
		e.Outcomes = fails
	case uncertain:
		e.Outcomes = []verdict.Outcome{verdict.Pass, verdict.Fail}
	default:
		e.Outcomes = passes
	}
	switch {
	case vain && !uncertain:
		e.Outcomes = []verdict.Outcome{verdict.Invalid}
	case vain && !sure:
		e.Outcomes = []verdict.Outcome{verdict.Invalid, verdict.Fail}
	case hidden && !sure:
		e.Outcomes = append(slices.Clone(e.Outcomes), verdict.Invalid)
	}
	return e
}

// faults are the counts that are 0 in a good run.
var faults = []string{"missed", "duplicated", "reordered", "corrupted", "late", "dropped", "refused", "unfinished", "announced", "strayed", "id resets"}

func answerTo(l *message, ok int) string {
	switch l.status {
	case 0:
		return "messages open"
	case ok:
		return "messages confirmed"
	}
	return "messages refused"
}

// expectClient returns the expected findings on one stream.
func (sc *scenario) expectClient(h *hub, d *hubClient) counts {
	c := counts{}
	if len(d.Spans) == 0 {
		name := "refused"
		if h.fault.Join != 0 && d.joinRefused {
			name = "dropped"
		}
		c.add(name, exactCount(1))
		for _, l := range d.topic.messages {
			c.add("not expected", exactCount(btoi(l.status == h.Status)))
		}
		return c
	}
	c.add("reconnected", reconnectCount(&d.Client, d.Last().To))
	if h.fault.NeverEnds && h.fault.Matches(d.ID) {
		c.add("unfinished", exactCount(1))
	}
	c.add("dropped", sc.expectDropped(d))
	certain := sc.expectFrames(h, d, c)
	sc.expectIDs(d, c)
	for _, l := range d.topic.messages {
		if l.status != h.Status {
			continue
		}
		missed, hidden := expectation(d, l)
		if last := d.Last(); sc.Plan.Reconnect && sc.Hub.Resume != "none" && last.EndReason != fakeservice.EndRequested && last.To.Sub(l.got) < streamMargin+hubSlack {
			hidden.Max = max(hidden.Max, btoi(d.firstRequestAt.Add(sc.Plan.hold()).Sub(last.To) > streamMargin-2*hubSlack)) // the client was disconnected at the end
		}
		if missed.Min == 0 && h.Order == "" {
			missed = sc.boundLoss(d, l, missed)
		}
		c.add("checked", span{missed.Min, max(missed.Max, hidden.Max)})
		if sure, arrived := certain[l.number]; arrived {
			c.add("not expected", span{0, btoi(!sure)})
			continue
		}
		at, dropped := d.dropped[l.number]
		if dropped && sc.Suite == "resume" {
			d.broken[at] = true
			c.add("cuts lost", exactCount(1))
		}
		if dropped && sc.HubFault.Allowed {
			continue
		}
		c.add("missed", missed)
		c.add("could_hide", hidden)
		c.add("not expected", span{btoi(missed.Max+hidden.Max == 0), 1 - missed.Min})
	}
	if sc.Suite == "resume" {
		delete(d.broken, 0)
		c.add("cuts broken", exactCount(len(d.broken)))
		c.add("cuts doubled", c["duplicated"])
		c.add("cuts announced", c["announced"])
	}
	return c
}

// expectDropped returns 1 for a client that had no open stream at the end of the run, and 0 for other clients.
func (sc *scenario) expectDropped(d *hubClient) span {
	last := d.Last()
	before := d.firstRequestAt.Add(sc.Plan.hold()).Sub(last.To)
	switch {
	case last.EndReason == fakeservice.EndInOrder || last.EndReason == fakeservice.EndReset:
		switch {
		case !sc.Plan.Reconnect:
			return exactCount(1)
		case sc.reconnectsOnce(d.ID):
			return span{btoi(before > time.Duration(sc.Hub.Retry)*time.Millisecond+2*hubSlack), 1}
		}
		return sc.tooLong(before)
	case last.EndReason == fakeservice.EndRequested:
		return span{}
	}
	return span{btoi(before > 2*hubSlack), btoi(before > hubSlack/3)}
}

// reconnectsOnce reports whether a client reconnects only once: it gets no new token, or the service refuses its token.
func (sc *scenario) reconnectsOnce(id string) bool {
	return sc.Hub.TTL > 0 && (sc.Hub.Token == "once" || sc.Hub.Token == "fails" || sc.HubFault.TokenRefused && sc.HubFault.Matches(id))
}

// isSimulated reports whether a client can detect at once that no message has that number. It then counts the message
// as the next one.
func (sc *scenario) isSimulated(number int) bool {
	most := math.Ceil(sc.Hub.Rate*sc.Plan.hold().Seconds()/float64(sc.Hub.Topics)) + 1
	return number <= 0 || float64(number) > most
}

// isSure reports whether the client certainly read a frame that was written at the given time in a span.
func isSure(s fakeservice.OpenSpan, at time.Time) bool {
	return s.Reported || s.EndReason == fakeservice.EndInOrder || s.To.Sub(at) > hubSlack
}

// expectFrames counts the frames written to a client. It returns the numbers that arrived, or would have arrived
// without a fault, and whether that is certain.
func (sc *scenario) expectFrames(h *hub, d *hubClient, c counts) map[int]bool {
	d.broken = map[int]bool{}
	certain, arrived, doubtful := map[int]bool{}, map[int]bool{}, map[int]bool{}
	highest := 0
	for _, f := range d.frames {
		one := exactCount(1)
		sure := !f.unsure && isSure(d.Spans[f.span], f.at)
		if !sure {
			one = span{0, 1}
		}
		switch f.kind {
		case frameForeign:
			c.add("foreign", one)
		case frameOtherTopic:
			c.add("strayed", one)
		case frameHeartbeat:
			if h.Heartbeat == "line" { // the line may be part of the next block
				one.Min = 0
			}
			c.add("heartbeats", one)
		case frameGap:
			c.add("announced", one)
			d.broken[f.span] = true
		case frameMessage:
			switch {
			case sc.isSimulated(f.reads):
				c.add("corrupted", one)
				certain[f.number] = true
				continue
			case f.reads > len(d.topic.messages):
				c.add("corrupted", one)
			case arrived[f.reads]:
				if doubtful[f.reads] {
					one.Min = 0
				}
				certain[f.reads] = certain[f.reads] || sure
				c.add(map[bool]string{true: "duplicated", false: "repeated"}[h.Delivery == ""], one)
				if h.Delivery == "" {
					d.broken[f.span] = true
				}
			default:
				c.add("received", one)
				if f.reads < highest && h.Order == "" {
					c.add("reordered", one)
				}
				arrived[f.reads], certain[f.reads], doubtful[f.reads] = true, sure, !sure
				if h.Timed {
					c.add("late", longer(f.at.Sub(f.sent), sc.Plan.lateLimit(), hubSlack))
				}
			}
			highest = max(highest, f.reads)
		}
	}
	return certain
}

// expectation returns whether a message that did not arrive counts as missed or as undetectable. It is undetectable if
// the hub acknowledged it only when the stream was about to end.
func expectation(d *hubClient, l *message) (missed, hidden span) {
	for _, s := range d.expectedTimes(streamMargin + hubSlack) {
		from, answered := l.got.Sub(s.From)-streamMargin, s.To.Sub(l.answered)-streamMargin
		missed.Min = max(missed.Min, btoi(from > hubSlack && answered > hubSlack))
	}
	for _, s := range d.expectedTimes(streamMargin - hubSlack) {
		from, to, answered := l.got.Sub(s.From)-streamMargin, s.To.Sub(l.got)-streamMargin, s.To.Sub(l.answered)-streamMargin
		missed.Max = max(missed.Max, btoi(from > -hubSlack && answered > -hubSlack))
		hidden.Max = max(hidden.Max, btoi(from > -hubSlack && to > -hubSlack && answered < hubSlack))
	}
	return missed, hidden
}

// boundLoss returns the count of a lost message. It is 1 if a message before it and one after it arrived on the same
// stream.
func (sc *scenario) boundLoss(d *hubClient, l *message, by span) span {
	group, before := -1, false
	arrived := map[int]bool{}
	for _, f := range d.frames {
		if !d.Spans[f.span].Resumed && f.span != group {
			group, before = f.span, false
		} else if f.span > group {
			group = f.span
		}
		if f.kind != frameMessage || sc.isSimulated(f.reads) || arrived[f.reads] {
			continue
		}
		arrived[f.reads] = true
		switch {
		case f.reads == l.number: // a copy of the message itself
		case f.reads > len(d.topic.messages): // the number was changed, and proves nothing
			return span{0, 1}
		case f.reads < l.number:
			before = true
		case before && isSure(d.Spans[f.span], f.at):
			by = exactCount(1)
		case before:
			by.Max = 1
		}
	}
	return by
}

// expectedTimes returns the spans in which messages were expected. Messages between two streams are expected if the
// second one resumes the first. If the second is the last one, it must also have been open for at least atLeast.
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
