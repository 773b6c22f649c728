package main

import (
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// expectLate returns 1 for a noop that was sent later than the limit, and 0 for other noops. Within the slack, it
// allows both.
func (sc *scenario) expectLate(n *fakeservice.Noop) span {
	return longer(n.At.Sub(n.Due), sc.Plan.lateLimit(), sc.slack())
}

// expectMissed counts the noops that a client expected and that did not arrive. The span allows for losses that only
// the interval can reveal, because these may be undetectable at the start or end of a stream.
func (sc *scenario) expectMissed(d *fakeservice.NoopClient) (sum span) {
	end := d.LastExpected()
	expected := d.Noops[:0:0]
	for _, n := range d.Noops {
		if n.Due.Before(end) {
			expected = append(expected, n)
		}
	}
	first, last := -1, -1
	for i := range expected {
		if !expected[i].Lost(d.CutAt) {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	for i := range expected {
		n := &expected[i]
		if !n.Lost(d.CutAt) {
			continue
		}
		startsOutage := n.Disconnected && (i == 0 || !expected[i-1].Disconnected)
		switch byNumber := sc.Service.Numbered() && !n.Unserved && !n.OtherEvent; {
		case i > last && byNumber && sc.Service.KeepsLedger():
			sum.add(exactCount(1))
		case i > last:
			sum.add(sc.lossAtEnd(end, n))
		case i < first && !byNumber && i == 0:
			sum.add(sc.lossAtStart(d, &expected[first]))
		case startsOutage && !sc.Service.Numbered(): // the next stream may have a different phase
			sum.add(span{0, 1})
		default:
			sum.add(exactCount(1))
		}
	}
	if first < 0 && sum.Min > 0 && !sc.Service.KeepsLedger() {
		sum.Min-- // without a noop, the interval is unknown
	}
	return sum
}

// lossAtEnd returns the count of a loss that no later noop follows. The loss may be undetectable near the end.
func (sc *scenario) lossAtEnd(end time.Time, n *fakeservice.Noop) span {
	return span{btoi(end.Sub(n.Due) > sc.Plan.tolerance()+sc.slack()), 1}
}

// lossAtStart returns the count of a lost first noop that only the interval can reveal. The loss is undetectable if
// slot 2 was due about one interval after the headers, because a correct service may send its first noop then.
func (sc *scenario) lossAtStart(d *fakeservice.NoopClient, next *fakeservice.Noop) span {
	head := next.Due.Sub(d.Spans[0].From) - time.Duration(next.Slot-2)*sc.Service.Schedule.Interval
	return span{btoi(head > sc.Plan.interval()*3/2+sc.slack()), 1}
}
