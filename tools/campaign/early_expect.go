package main

import (
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// expectEarly returns the expected verdict. It includes the losses that a runner observed, and the share of the time in
// which clients were observed.
func (r *run) expectEarly() *verdictExpectation {
	if r.Early.Overlap {
		return expectInvalid(verdict.CheckComplete)
	}
	r.service.Mu.Lock()
	defer r.service.Mu.Unlock()
	e := expectPass()
	var observedTime time.Duration
	for _, d := range r.service.Clients {
		spans := r.observedSpans(d)
		for _, s := range spans {
			observedTime += s.To.Sub(s.From)
		}
		for i := range d.Noops {
			n := &d.Noops[i]
			if !n.Lost(d.CutAt) || n.Disconnected {
				continue
			}
			lost := r.lossObserved(spans, n.Due)
			e.Counts.add("missed", lost)
			if lost.Max > 0 {
				e.Clients[d.ID] = lost.Min > 0
			}
		}
	}
	switch missed := e.Counts["missed"]; {
	case missed.Min > 0:
		e.Outcomes = fails
	case missed.Max > 0:
		e.Outcomes = []verdict.Outcome{verdict.Pass, verdict.Fail}
	}
	share := int(1000 * observedTime.Seconds() / (r.Plan.hold().Seconds() * float64(r.Plan.Connections)))
	const slack = 60 // per mille
	e.Counts["coverage"] = span{share - slack, share + slack}
	if len(r.endings) == 0 {
		e.Counts["coverage"] = exactCount(1000)
	}
	return e
}

// observedSpans returns the spans in which a runner observed the streams of a client. If the runner ended early or was
// suspended, the spans of its open streams end at observedUntil.
func (r *run) observedSpans(d *fakeservice.NoopClient) (out []fakeservice.OpenSpan) {
	for _, s := range d.Spans {
		if s.To.IsZero() {
			s.To = d.LastExpected()
		}
		for _, end := range r.endings {
			if s.From.Before(end.observedUntil) && s.To.After(end.observedUntil) && s.To.Before(end.at.Add(time.Second)) {
				s.To = end.observedUntil
			}
		}
		out = append(out, s)
	}
	return out
}

// lossObserved returns 1 for a loss while a runner observed the client, and 0 for others. Near the ends of a span, it
// allows both.
func (r *run) lossObserved(spans []fakeservice.OpenSpan, due time.Time) (lost span) {
	const slack = 300 * time.Millisecond
	margin := 2*r.Service.Schedule.Interval + slack // allows for the noops before and after the loss
	for _, s := range spans {
		lost.Min += btoi(due.After(s.From.Add(margin)) && due.Before(s.To.Add(-margin)))
		lost.Max += btoi(due.After(s.From.Add(-slack)) && due.Before(s.To.Add(slack)))
	}
	return span{min(lost.Min, 1), min(lost.Max, 1)}
}
