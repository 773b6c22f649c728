package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// newTestHub returns a hub of one topic and one stream, open from 0 s to 10 s, to which a message is published every
// half second. numbers returns the numbers with which a message arrived: empty if it was lost, 0 if it was corrupted.
func newTestHub(t *testing.T, numbers func(number int) []int) (*scenario, *hub) {
	t.Helper()
	began := time.Now()
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	topic := &hubTopic{}
	d := &hubClient{Client: fakeservice.Client{ID: "h-0", Spans: []fakeservice.OpenSpan{{From: at(0), To: at(10), EndReason: fakeservice.EndClient}}}, topic: topic, firstRequestAt: began}
	for number := 1; number < 20; number++ {
		sent := at(float64(number) / 2)
		topic.messages = append(topic.messages, &message{topic: topic, index: number - 1, number: number, got: sent, answered: sent.Add(time.Millisecond), status: 200})
		for _, reads := range numbers(number) {
			d.frames = append(d.frames, frame{kind: frameMessage, number: number, reads: reads, sent: sent, at: sent.Add(time.Millisecond)})
		}
	}
	sc := &scenario{Hub: &hubSpec{Topics: 1, Rate: 2, Status: 200, Marked: true}, Plan: plan{Connections: 1, Seconds: 15, LateMS: 1000, MaxLate: -1, Prefix: "h-"}}
	return sc, &hub{hubSpec: *sc.Hub, plan: sc.Plan, topics: []*hubTopic{topic}, byID: map[string]*hubClient{"h-0": d}}
}

func TestExpectationsOfAHub(t *testing.T) {
	but := func(one int, numbers ...int) func(int) []int {
		return func(number int) []int {
			if number == one {
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
		"nothing is wrong":           {but(0), counts{}, passes},
		"lost":                       {but(8), counts{"missed": exactCount(1)}, fails},
		"lost in the first second":   {but(1), counts{"not expected": exactCount(1)}, passes},
		"lost there, between others": {but(2), counts{"missed": exactCount(1)}, fails},
		"lost in the last second":    {but(19), counts{"not expected": exactCount(1)}, passes},
		"repeated":                   {but(8, 8, 8), counts{"duplicated": exactCount(1)}, fails},
		"corrupted":                  {but(8, 0), counts{"corrupted": exactCount(1)}, fails},
		"taken for the next":         {but(8, 9), counts{"missed": exactCount(1), "duplicated": exactCount(1)}, fails},
		"a number that nobody sent":  {but(8, 20), counts{"missed": exactCount(1), "corrupted": exactCount(1), "reordered": {9, 11}}, fails},
		"one that nobody could send": {but(8, 1000), counts{"corrupted": exactCount(1)}, fails},
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
