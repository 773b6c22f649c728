package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// newClient returns the record of a client whose noops were due one second apart. Each "-" in arrived is a lost noop.
// The client requests the end of its stream when tail has passed since the last noop was due.
func newClient(arrived string, tail time.Duration) *fakeservice.NoopClient {
	start := time.Now()
	d := &fakeservice.NoopClient{Client: fakeservice.Client{ID: "a", Spans: []fakeservice.OpenSpan{{From: start}}}, First: start.Add(time.Second)}
	for i, c := range arrived {
		due := start.Add(time.Duration(i+1) * time.Second)
		n := fakeservice.Noop{Slot: i + 1, Number: uint64(i + 1), Due: due}
		if c != '-' {
			n.At, n.Copies = due, 1
		}
		d.Noops = append(d.Noops, n)
	}
	d.EndRequestedAt = d.Noops[len(d.Noops)-1].Due.Add(tail)
	d.Last().To = d.EndRequestedAt.Add(time.Millisecond)
	return d
}

func TestExpectedLoss(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		ids     string
		ledger  bool
		arrived string
		tail    time.Duration
		want    span
	}{
		"in the middle":                                {fakeservice.IDsNone, false, "00-00", second / 2, exactCount(1)},
		"the last, long before the end":                {fakeservice.IDsNone, false, "0000-", second * 8 / 10, exactCount(1)},
		"the last, just before the end, by the clock":  {fakeservice.IDsNone, false, "0000-", second / 10, span{0, 1}},
		"the last, at the tolerance":                   {fakeservice.IDsNone, false, "0000-", second / 2, span{0, 1}},
		"the last, just before the end, by the ledger": {fakeservice.IDsNumbers, true, "0000-", second / 10, exactCount(1)},
		"the first, by number":                         {fakeservice.IDsNumbers, false, "-0000", second / 2, exactCount(1)},
		"the first, by the clock":                      {fakeservice.IDsNone, false, "-0000", second / 2, exactCount(1)},
		"the last but one":                             {fakeservice.IDsNone, false, "000-0", second / 100, exactCount(1)},
	} {
		sc := &scenario{Plan: plan{Interval: 1, LateMS: 1000}, Service: &fakeservice.ServiceSpec{IDs: c.ids, Ledger: c.ledger, Schedule: fakeservice.Schedule{Interval: second}}}
		require.Equal(t, c.want, sc.expectMissed(newClient(c.arrived, c.tail)), name)
	}
}

func TestStreamOpenedAtTheEndMayNotCount(t *testing.T) {
	for age, want := range map[time.Duration]span{time.Second: exactCount(2), hubSlack / 2: {1, 2}} {
		d := newClient("00", time.Second)
		d.Spans = append(d.Spans, fakeservice.OpenSpan{}, fakeservice.OpenSpan{From: d.LastExpected().Add(-age), To: d.Last().To})
		require.Equal(t, want, reconnectCount(&d.Client, d.LastExpected()), age)
	}
}

func TestCloseAfterAnIdleTimeoutCountsAsDropped(t *testing.T) {
	for tail, want := range map[time.Duration]span{1500 * time.Millisecond: {}, 2510 * time.Millisecond: {0, 1}, 4 * time.Second: exactCount(1)} {
		sc := &scenario{Plan: plan{Interval: 1}, Service: &fakeservice.ServiceSpec{Schedule: fakeservice.Schedule{Interval: time.Second}}}
		require.Equal(t, want, sc.expectNoopDrop(newClient("00", tail)), tail)
	}
}

func TestNoopSentAfterTheEndWasRequestedMayCount(t *testing.T) {
	sc := &scenario{Plan: plan{Interval: 1}, Service: &fakeservice.ServiceSpec{Schedule: fakeservice.Schedule{Interval: time.Second}}}
	d := newClient("000", -time.Millisecond)
	for i := range d.Noops {
		d.Noops[i].Corrupt, d.Noops[i].Copies = true, 2
	}
	sums := sc.expectNoopClient(d)
	require.Equal(t, span{2, 3}, sums["corrupted"])
	require.Equal(t, span{2, 3}, sums["duplicated"])
}

func TestPassWithALossIsAMissedFault(t *testing.T) {
	e := verdictExpectation{Outcomes: []verdict.Outcome{verdict.Fail}, Counts: counts{"missed": exactCount(1)}}
	v := &verdict.Verdict{}
	v.Verdict = verdict.Pass
	differences, undecided := e.compare(v)
	require.NotEmpty(t, differences)
	require.False(t, undecided, "a pass without undetectable losses must not be undecided")
	e.Undetectable, v.Evidence.Undetectable = 2, 1
	_, undecided = e.compare(v)
	require.False(t, undecided, "a pass that lists too few undetectable losses must not be undecided")
	v.Evidence.Undetectable = 2
	differences, undecided = e.compare(v)
	require.Empty(t, differences)
	require.True(t, undecided, "a pass that lists the losses as undetectable must be undecided")
}

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

// newResumingHub returns a hub whose stream was disconnected after 5 s and resumed 2 s later. Nine messages were
// written before the disconnect, and the client read only the first eight.
func newResumingHub(t *testing.T, fault hubFault, vanished bool) (*scenario, *hub) {
	t.Helper()
	sc, h := newTestHub(t, func(number int) []int {
		if number > 9 {
			return nil
		}
		return []int{number}
	})
	sc.Suite, sc.Family, sc.HubFault = "resume", "resume", fault
	sc.Hub.IDs, h.IDs, h.fault, sc.Plan.Reconnect = idsUUID, idsUUID, fault, true
	d := h.byID["h-0"]
	whole := d.Spans[0]
	reconnectedAt := whole.From.Add(7 * time.Second)
	d.Spans = []fakeservice.OpenSpan{{From: whole.From, To: whole.From.Add(5 * time.Second), EndReason: fakeservice.EndClient}, {From: reconnectedAt, To: whole.To, EndReason: fakeservice.EndClient, Resumed: true}}
	f := &hubStream{hub: h, client: d, span: 1}
	lastID := f.resumeID(d.topic.messages[7])
	d.readUpTo(0, d.topic.resumePoint(f, lastID), false)
	published := d.topic.messages
	d.topic.messages = published[:13]
	for _, m := range published {
		m.delivered = true
	}
	messages := f.resumedMessages(d.topic.resumeIndex(f, lastID), vanished)
	d.topic.messages = published
	for _, m := range append(messages, published[13:]...) {
		d.frames = append(d.frames, frame{kind: frameMessage, number: m.number, seq: m.number, receivedAt: m.receivedAt, at: reconnectedAt, span: 1})
	}
	return sc, h
}

func TestExpectedCountsOfReconnects(t *testing.T) {
	for name, c := range map[string]struct {
		fault    hubFault
		vanished bool
		counts   counts
		want     []verdict.Outcome
	}{
		"no fault":                                {hubFault{}, false, counts{}, passes},
		"the first is lost":                       {hubFault{Seam: seamLosesFirst}, false, counts{"missed": exactCount(1), "cuts lost": exactCount(1), "cuts broken": exactCount(1)}, fails},
		"the last is lost":                        {hubFault{Seam: seamLosesLast}, false, counts{"missed": exactCount(1), "cuts lost": exactCount(1), "cuts broken": exactCount(1)}, fails},
		"all are lost":                            {hubFault{Seam: seamLosesAll}, false, counts{"missed": exactCount(5), "cuts lost": exactCount(5), "cuts broken": exactCount(1)}, fails},
		"a gap is announced, and allowed":         {hubFault{Seam: seamAnnounced, Allowed: true}, false, counts{"cuts lost": exactCount(5), "cuts broken": exactCount(1)}, passes},
		"two are skipped":                         {hubFault{Seam: seamSkipsTwo}, false, counts{"missed": exactCount(2), "cuts lost": exactCount(2), "cuts broken": exactCount(1)}, fails},
		"resumed from an earlier id":              {hubFault{Overlap: 2}, false, counts{"duplicated": exactCount(2), "cuts duplicated": exactCount(2), "cuts broken": exactCount(1)}, fails},
		"the last is repeated":                    {hubFault{Seam: seamRepeatsLast}, false, counts{"duplicated": exactCount(1), "cuts duplicated": exactCount(1), "cuts broken": exactCount(1)}, fails},
		"all are replayed":                        {hubFault{Seam: seamReplaysAll}, false, counts{"duplicated": exactCount(8), "cuts duplicated": exactCount(8), "cuts broken": exactCount(1)}, fails},
		"the first two are swapped":               {hubFault{Seam: seamSwapsFirst}, false, counts{"reordered": exactCount(1)}, fails},
		"the fault affects only vanished clients": {hubFault{Seam: seamLosesAll, StreamsOf: "half"}, false, counts{}, passes},
		"the client had vanished":                 {hubFault{Seam: seamLosesAll, StreamsOf: "half"}, true, counts{"missed": exactCount(5), "cuts lost": exactCount(5), "cuts broken": exactCount(1)}, fails},
		"the fault affects another client":        {hubFault{Seam: seamLosesAll, Fault: fakeservice.Fault{Clients: []string{"h-1"}}}, false, counts{}, passes},
	} {
		sc, h := newResumingHub(t, c.fault, c.vanished)
		e := sc.expectHub(h)
		require.Equal(t, c.want, e.Outcomes, name)
		for _, count := range []string{"missed", "duplicated", "reordered", "cuts lost", "cuts duplicated", "cuts broken"} {
			require.Equal(t, c.counts[count], e.Counts[count], "%s: %s", name, count)
		}
	}
}

// A client that reconnects without an id has read no message, and does not resume. A message that was written to its
// previous stream does not count.
func TestReconnectWithoutReadMessages(t *testing.T) {
	_, h := newTestHub(t, func(number int) []int {
		if number == 1 {
			return []int{1}
		}
		return nil
	})
	h.IDs, h.Resume = idsUUID, "header"
	d := h.byID["h-0"]
	d.topic.streams = map[*hubStream]bool{}
	(&hubStream{Stream: &fakeservice.Stream{}, hub: h, client: d}).begin("")
	require.Empty(t, d.frames)
	require.False(t, d.Last().Resumed, "the stream must not resume")
}
