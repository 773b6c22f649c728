package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// newTestHub returns a hub with one topic and one stream, which is open from 0 s to 10 s. A message is published every
// half second. numbers returns the numbers with which a message arrived: empty if it was lost, 0 if it was corrupted.
func newTestHub(t *testing.T, numbers func(number int) []int) (*scenario, *hub) {
	t.Helper()
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	topic := &hubTopic{}
	d := &hubClient{Client: fakeservice.Client{ID: "h-0", Spans: []fakeservice.OpenSpan{{From: at(0), To: at(10), EndReason: fakeservice.EndClient}}}, topic: topic, firstRequestAt: start}
	for number := 1; number < 20; number++ {
		sent := at(float64(number) / 2)
		topic.messages = append(topic.messages, &message{topic: topic, index: number - 1, number: number, receivedAt: sent, answeredAt: sent.Add(time.Millisecond), status: 200})
		for _, seq := range numbers(number) {
			d.frames = append(d.frames, frame{kind: frameMessage, number: number, seq: seq, receivedAt: sent, at: sent.Add(time.Millisecond)})
		}
	}
	sc := &scenario{Hub: &hubSpec{Topics: 1, Rate: 2, Status: 200, HasMarker: true}, Plan: plan{Connections: 1, Seconds: 15, LateMS: 1000, MaxLate: -1, Prefix: "h-"}}
	return sc, &hub{hubSpec: *sc.Hub, plan: sc.Plan, topics: []*hubTopic{topic}, byID: map[string]*hubClient{"h-0": d}}
}

// If a run ends while a client is reconnecting, the hub may have accepted a stream whose headers the client did not
// receive. Such a client was not dropped.
func TestClientThatReconnectsAtTheEndMayPass(t *testing.T) {
	sc, h := newTestHub(t, func(number int) []int { return []int{number} })
	sc.Plan.Reconnect, sc.Hub.Resume = true, "header"
	d := h.byID["h-0"]
	reconnectedAt := d.firstRequestAt.Add(9300 * time.Millisecond)
	d.Spans[0].To, d.Spans[0].EndReason = reconnectedAt.Add(-100*time.Millisecond), fakeservice.EndInOrder
	d.Spans = append(d.Spans, fakeservice.OpenSpan{From: reconnectedAt, To: reconnectedAt.Add(10 * time.Millisecond), EndReason: fakeservice.EndClient, Resumed: true})
	require.Contains(t, sc.expectHub(h).Outcomes, verdict.Pass)
}

// If the load generator connects late, all clients close their streams early.
func TestClientIsDroppedIfOthersStayOpenLonger(t *testing.T) {
	for otherEnd, want := range map[time.Duration]verdict.Outcome{9200 * time.Millisecond: verdict.Pass, 10 * time.Second: verdict.Fail} {
		sc, h := newTestHub(t, func(number int) []int { return []int{number} })
		sc.Plan.Connections = 2
		d := h.byID["h-0"]
		other := *d
		other.ID, other.Spans = "h-1", slices.Clone(d.Spans)
		h.byID["h-1"] = &other
		d.Spans[0].To = d.firstRequestAt.Add(9100 * time.Millisecond)
		other.Spans[0].To = d.firstRequestAt.Add(otherEnd)
		require.Equal(t, []verdict.Outcome{want}, sc.expectHub(h).Outcomes[:1], "the other stream closed after %s", otherEnd)
	}
}

// The hub wrote message 19 just before the stream ended, so the client may not have read it. The client then stayed
// disconnected, so the loss is undetectable.
func TestUnreadMessageBeforeADisconnectIsUndetectable(t *testing.T) {
	sc, h := newTestHub(t, func(number int) []int { return []int{number} })
	sc.Plan.Reconnect, sc.Hub.Resume = true, "header"
	d := h.byID["h-0"]
	d.Spans[0].To, d.Spans[0].EndReason = d.firstRequestAt.Add(9600*time.Millisecond), fakeservice.EndReset
	d.firstRequestAt = d.firstRequestAt.Add(5 * time.Second) // the hold ends long after the stream
	e := sc.expectHub(h)
	require.Equal(t, span{0, 1}, e.Counts["undetectable"])
	require.Equal(t, span{18, 19}, e.Counts["received"])
}

func TestExpectedCountsOfAHub(t *testing.T) {
	replaceNumbers := func(message int, numbers ...int) func(int) []int {
		return func(number int) []int {
			if number == message {
				return numbers
			}
			return []int{number}
		}
	}
	for name, c := range map[string]struct {
		numbers func(int) []int
		counts  counts
		want    []verdict.Outcome
	}{
		"no fault":                 {replaceNumbers(0), counts{}, passes},
		"lost":                     {replaceNumbers(8), counts{"missed": exactCount(1)}, fails},
		"lost in the first second": {replaceNumbers(1), counts{"not expected": exactCount(1)}, passes},
		"lost in the first second, between two others": {replaceNumbers(2), counts{"missed": exactCount(1)}, fails},
		"lost in the last second":                      {replaceNumbers(19), counts{"not expected": exactCount(1)}, passes},
		"repeated":                                     {replaceNumbers(8, 8, 8), counts{"duplicated": exactCount(1)}, fails},
		"corrupted":                                    {replaceNumbers(8, 0), counts{"corrupted": exactCount(1)}, fails},
		"with the next number":                         {replaceNumbers(8, 9), counts{"missed": exactCount(1), "duplicated": exactCount(1)}, fails},
		"with a number that was not sent":              {replaceNumbers(8, 20), counts{"missed": exactCount(1), "corrupted": exactCount(1), "reordered": {9, 11}}, fails},
		"with a number that no run reaches":            {replaceNumbers(8, 1000), counts{"corrupted": exactCount(1)}, fails},
	} {
		sc, h := newTestHub(t, c.numbers)
		e := sc.expectHub(h)
		require.Equal(t, c.want, e.Outcomes, name)
		for _, count := range append(faults, "not expected") {
			if count != "late" {
				want := c.counts[count]
				require.True(t, e.Counts[count].Min >= want.Min && e.Counts[count].Max <= want.Max, "%s: %s is %s instead of %s", name, count, e.Counts[count], want)
			}
		}
	}
}
