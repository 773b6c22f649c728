package soak

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

const descriptionJS = `var described = service({
	name: "mine", token: () => "secret", connect: { method: "POST", url: "{base}/rooms/{topic}", headers: { Authorization: "Bearer {token}" }, body: '{"room":"{topic}"}' },
	heartbeat: { comment: true, every: 5 },
	message: { event: "news", seq: "json:$.seq", run: "json:$.run", sentAt: "json:$.t", sum: "json:$.sum" },
	resume: { by: { query: "since" }, gap: { event: "reset" } },
	publish: { url: "{base}/pub/{topic}", body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}' },
});`

// newServiceVU returns a virtual user with a described service, without a publisher.
func newServiceVU(t *testing.T, description string) (*modulestest.Runtime, *recorder) {
	t.Helper()
	rt, r := newVU(t)
	js(t, rt, description)
	js(t, rt, planJS)
	r.mu.Lock()
	r.plan.Service, r.plan.Marker, r.plan.Topics = "mine", "run-1", 2
	r.configure()
	r.mu.Unlock()
	rt.MoveToVUContext(&lib.State{Samples: make(chan metrics.SampleContainer, 1000), Tags: lib.NewVUStateTags(rt.VU.InitEnv().Registry.RootTagSet())})
	return rt, r
}

func feed(t *testing.T, o *observer, at time.Time, text string) {
	t.Helper()
	require.ErrorIs(t, feedBlocks(o, at, text), io.EOF)
}

// feedBlocks passes the blocks of a text to an observer, and returns the error that ends them.
func feedBlocks(o *observer, at time.Time, text string) error {
	p := eventstream.New(strings.NewReader(text))
	for {
		var b eventstream.Block
		part, err := p.NextPart(&b)
		if err != nil {
			return err //nolint:wrapcheck // a test
		}
		if part == eventstream.CommentLine {
			o.comment(at, b.Comment)
			continue
		}
		o.block(at, &b)
	}
}

// message returns a message in the format of the description.
func (r *recorder) message(t *testing.T, marker string, seq int64, sentAt time.Time) string {
	t.Helper()
	v := service.Values{Run: marker, Seq: seq, SentAt: sentAt.UnixMicro()}
	return fmt.Sprintf("event: news\ndata: %s\n\n", r.service.Publish.Body.Append(nil, &v))
}

func TestBlocksAreCountedByKind(t *testing.T) {
	t.Parallel()
	rt, r := newServiceVU(t, descriptionJS)
	o := newStream(t, rt, "d-1")
	start := r.start
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	o.connect(second(1))
	feed(t, o, second(2), ": hello\n\n")                                                                   // a heartbeat
	feed(t, o, second(3), r.message(t, "run-1.1", 4, second(3).Add(-20*time.Millisecond)))                 // a message
	feed(t, o, second(4), ": inside\n"+r.message(t, "run-1.1", 5, second(4)))                              // the comment inside is not a heartbeat
	feed(t, o, second(5), "event: other\ndata: x\n\n")                                                     // not in the description
	feed(t, o, second(6), r.message(t, "run-1.0", 5, second(6)))                                           // of another topic
	feed(t, o, second(6), r.message(t, "run-2.1", 5, second(6)))                                           // of another run
	feed(t, o, second(7), "event: reset\ndata:\n\n")                                                       // a gap that the service reports
	feed(t, o, second(8), strings.Replace(r.message(t, "run-1.1", 6, second(8)), `"seq":6`, `"seq":8`, 1)) // corrupted
	feed(t, o, second(9), r.message(t, "run-1.1", 7, second(9)))
	feed(t, o, second(10), r.message(t, "run-1.1", 7, second(9)))
	feed(t, o, second(11), ":\n") // Mercure's heartbeat has no blank line
	feed(t, o, second(12), r.message(t, "run-1.1", 9, second(12)))
	o.endBy(sseclient.ReasonClient, second(13))
	got := shardOf(r).Connections[0]
	require.Equal(t, ledger.Counts{Received: 4, Duplicated: 1, Corrupted: 1, Lost: 1, Heartbeats: 2, Uncounted: 1, Foreign: 1, Misrouted: 1, AnnouncedGaps: 1}, got.Counts)
	require.EqualValues(t, 4, got.First)
	require.EqualValues(t, 9, got.Last)
	require.Equal(t, ledger.Completed, got.State)
	require.Equal(t, []ledger.Span{{From: time.Second, To: 13 * time.Second, First: 4, Last: 9}}, got.Spans)
	require.Equal(t, "other", got.Others[0].Name)
	require.Equal(t, time.Second, got.MaxSilence.Round(time.Second))
	r.endBucket(second(13), shard.ProcessUsage{}, nil)
	s := shardOf(r)
	require.Equal(t, 4, s.Series[0].Faults)
	require.Equal(t, "mine", s.Service.Name)
	require.EqualValues(t, "numbers", s.Service.CountBasis)
	require.InDelta(t, 0, s.Latency.MinUS, 10)
	require.Equal(t, 20*time.Millisecond, s.Lateness.Max())
}

// A stream that resumes after a message expects the messages published since then.
func TestStreamWithIDResumes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resume, blocks string
		want           bool
	}{
		{`{ by: "header" }`, "id: 5\ndata: x\n\n", true},
		{`{ by: { query: "since" } }`, "id: 5\ndata: x\n\n", true},
		{`{ by: "header" }`, "data: x\n\n", false},
		{`{ by: "header" }`, "id: 5\ndata: x\n\nid\ndata: x\n\n", false}, // the id is reset
		{`{ by: "none" }`, "id: 5\ndata: x\n\n", false},
		{`{ by: { query: "since" }, id: "json:$.id" }`, "data: {\"id\":\"a\"}\n\n", true},
		{`{ by: { query: "since" }, id: "json:$.id" }`, "id: 5\ndata: {}\n\n", false},
	} {
		rt, r := newServiceVU(t, `service({name: "any", connect: {url: "{base}"}, message: { seq: "json:$.n" }, resume: `+c.resume+`})`)
		o := newStream(t, rt, "d-0")
		for n := range 2 {
			second := func(k int) time.Time { return r.start.Add(time.Duration(10*n+k) * time.Second) }
			o.connect(second(1))
			feed(t, o, second(2), c.blocks)
			o.closed(second(3), sseclient.Close{Reason: sseclient.ReasonServer, Retry: time.Second})
		}
		spans := shardOf(r).Connections[0].Spans
		require.False(t, spans[0].Resumed)
		require.Equal(t, c.want, spans[1].Resumed, c.resume+c.blocks)
	}
}

// If a service numbers the messages of each stream from 1, equal numbers of two streams are not duplicates.
func TestNumbersRestartWithEachStream(t *testing.T) {
	t.Parallel()
	for per, duplicated := range map[string]uint64{"stream": 0, "topic": 2} {
		rt, r := newServiceVU(t, `service({name: "any", connect: {url: "{base}/{topic}"}, message: { seq: "json:$.n", per: "`+per+`" }, resume: { by: "none" }})`)
		o := newStream(t, rt, "d-0")
		for n := range 2 {
			second := func(k int) time.Time { return r.start.Add(time.Duration(10*n+k) * time.Second) }
			o.connect(second(1))
			feed(t, o, second(2), "data: {\"n\":1}\n\ndata: {\"n\":2}\n\n")
			o.closed(second(3), sseclient.Close{Reason: sseclient.ReasonServer, Retry: time.Second})
		}
		require.Equal(t, duplicated, shardOf(r).Connections[0].Duplicated, per)
	}
}

// The finding names the event whose empty id field left the client without an id.
func TestIDResetNamesItsEvent(t *testing.T) {
	t.Parallel()
	const message = "event: news\nid: 5\ndata: {\"n\":7}\n\n"
	for reset, want := range map[string]string{
		"event: ping\nid:\n\n":                       `heartbeat "ping"`,
		"event: hello\nid\ndata: x\n\n":              `event "hello"`,
		"id:\n\n":                                    "event without a name",
		"event: news\nid:\ndata: {\"n\":8}\n\n":      "message 8",
		"event: ping\nid:\n\nevent: ping\nid: 9\n\n": "", // the client has an id again
		"event: ping\nid: a\x00\n\n":                 "", // the standard ignores an id with NUL
	} {
		rt, r := newServiceVU(t, `service({name: "any", connect: {url: "{base}"}, heartbeat: { event: "ping" }, message: { event: "news", seq: "json:$.n" }})`)
		o := newStream(t, rt, "d-0")
		second := func(k int) time.Time { return r.start.Add(time.Duration(k) * time.Second) }
		o.connect(second(1))
		feed(t, o, second(2), message)
		feed(t, o, second(3), reset)
		o.closed(second(4), sseclient.Close{Reason: sseclient.ReasonServer, Retry: time.Second})
		o.connecting(second(5))
		o.openStream(second(6))
		got := shardOf(r).Connections[0]
		require.True(t, got.Spans[1].Resumed, "the stream must resume")
		if want == "" {
			require.Zero(t, got.IDResets, reset)
			continue
		}
		require.EqualValues(t, 1, got.IDResets, reset)
		require.Contains(t, got.Findings, ledger.Finding{Kind: ledger.KindIDReset, From: 7, At: 3 * time.Second, Note: want})
	}
}

func TestRequestsFollowTheDescription(t *testing.T) {
	t.Parallel()
	rt, _ := newServiceVU(t, descriptionJS)
	service := serviceOf(t, rt)
	overrides, err := service.requestOverrides(1, "d-1")
	require.NoError(t, err)
	require.Equal(t, sseclient.Request{
		URL: "http://h/rooms/d-topic-1", Method: "POST", Body: `{"room":"d-topic-1"}`,
		Header: http.Header{"Authorization": {"Bearer secret"}, "Content-Type": {"application/json"}},
	}, requestUsing(&service.Connect, overrides.values))
	require.Equal(t, "mine true true 0 5 client 0", js(t, rt, `[described.name, described.numbered, described.published, described.every, described.heartbeatEvery, described.endBy, described.lifetime].join(" ")`))
}

func TestVirtualUsersDeclareOneDescription(t *testing.T) {
	t.Parallel()
	rt, r := newVU(t)
	js(t, rt, descriptionJS)
	other := newVUOf(t, r)
	_, err := other.VU.Runtime().RunString(strings.Replace(descriptionJS, `"mine"`, `"yours"`, 1))
	require.ErrorContains(t, err, "soak.service was called with two different descriptions")
	_, err = other.VU.Runtime().RunString(`service({name: "x", connect: {url: "{bas}"}, message: "unchecked"})`)
	require.ErrorContains(t, err, "connect.url: unknown placeholder {bas}")
}

// A stream without counted messages stays open, and its silence is measured.
func TestStreamWithoutCountedMessagesStaysOpen(t *testing.T) {
	t.Parallel()
	rt, r := newServiceVU(t, `service({name: "any", connect: {url: "{base}"}, heartbeat: {comment: true}, message: "unchecked"})`)
	o := newStream(t, rt, "d-0")
	o.connect(r.start.Add(time.Second))
	feed(t, o, r.start.Add(2*time.Second), "data: x\n\n:\n\ndata: y\n\n")
	o.endBy(sseclient.ReasonClient, r.start.Add(20*time.Second))
	got := shardOf(r).Connections[0]
	require.Equal(t, ledger.Counts{Heartbeats: 1, Unchecked: 2}, got.Counts)
	require.Empty(t, got.Findings)
	require.Equal(t, 18*time.Second, got.MaxSilence)
	sums := o.ledger.Sums()
	require.True(t, o.passesCheck(&sums))
}

// The longest silence is measured for each service except noop, whose gaps between messages are measured.
func TestSilenceIsMeasuredWithAnInterval(t *testing.T) {
	t.Parallel()
	for declared, want := range map[string]time.Duration{
		`service({name: "any", connect: {url: "{base}"}, message: {every: 5}})`:  10 * time.Second,
		`service({name: "noop", connect: {url: "{base}"}, message: {every: 5}})`: 0,
	} {
		rt, r := newServiceVU(t, declared)
		o := newStream(t, rt, "d-0")
		o.connect(r.start.Add(time.Second))
		feed(t, o, r.start.Add(2*time.Second), "data: x\n\n")
		feed(t, o, r.start.Add(12*time.Second), "data: x\n\n")
		o.endBy(sseclient.ReasonClient, r.start.Add(20*time.Second))
		require.Equal(t, want, shardOf(r).Connections[0].MaxSilence, declared)
	}
}

// Only the publisher's log shows whether a stream without messages expected any, so its check passes.
func TestStreamWithoutMessagesPassesItsCheck(t *testing.T) {
	t.Parallel()
	rt, r := newServiceVU(t, descriptionJS)
	o := newStream(t, rt, "d-1")
	o.connect(r.start.Add(time.Second))
	o.endBy(sseclient.ReasonClient, r.start.Add(2*time.Second))
	sums := o.ledger.Sums()
	require.True(t, o.passesCheck(&sums))
}

// Only the comparison of all clients shows whether a message of a feed is a copy, so the check passes.
func TestRepetitionOfAComparedFeedPassesItsCheck(t *testing.T) {
	t.Parallel()
	rt, r := newServiceVU(t, `service({name: "mine", connect: {url: "{base}"}, message: {same: "data"}})`)
	receive := func(id, text string) *observer {
		o := newStream(t, rt, id)
		o.connect(r.start.Add(time.Second))
		feed(t, o, r.start.Add(5*time.Second), text)
		o.endBy(sseclient.ReasonClient, r.start.Add(20*time.Second))
		return o
	}
	receive("d-0", "data: a\n\ndata: b\n\ndata: c\n\n")
	second := receive("d-2", "data: a\n\ndata: b\n\ndata: a\n\n")
	sums := second.ledger.Sums()
	require.NotZero(t, sums.Duplicated)
	require.True(t, second.passesCheck(&sums))
}

// The second request contains values of the first event. Messages are expected after the response to the second
// request.
func TestSecondRequestContainsValuesOfTheFirstEvent(t *testing.T) {
	t.Parallel()
	rt, r := newServiceVU(t, `var described = service({name: "pb", connect: {url: "{base}", then: {event: "HELLO", client: "json:$.id", url: "{base}/join/{client}", body: '{"topic":"{topic}"}', ok: [204]}},
		message: {seq: "json:$.seq", run: "json:$.run"}, publish: {url: "{base}/{topic}", body: '{"run":"{run}","seq":{seq}}'}})`)
	js(t, rt, `var l = new Ledger("d-1")`)
	service := serviceOf(t, rt)
	overrides, err := service.requestOverrides(3, "d-3")
	require.NoError(t, err)
	got, err := service.secondRequestFor(&eventstream.Event{Name: []byte("other"), Data: []byte(`{"id":"a b"}`)}, overrides.values)
	require.NoError(t, err)
	require.Nil(t, got)
	got, err = service.secondRequestFor(&eventstream.Event{Name: []byte("HELLO"), Data: []byte(`{"id":"a b"}`)}, overrides.values)
	require.NoError(t, err)
	require.Equal(t, "http://h/join/a%20b", got.URL)
	require.Equal(t, `{"topic":"d-topic-1"}`, got.Body)
	require.True(t, got.OK(204))
	require.False(t, got.OK(200))
	_, err = service.secondRequestFor(&eventstream.Event{Name: []byte("HELLO"), Data: []byte(`{}`)}, overrides.values)
	require.ErrorContains(t, err, "connect.then.client")

	o, ok := rt.VU.Runtime().Get("l").Export().(*jsLedger)
	require.True(t, ok)
	o.connect(r.start.Add(time.Second))
	o.answered(r.start.Add(2*time.Second), nil)
	require.Equal(t, []ledger.Span{{From: 2 * time.Second}}, o.ledger.Record().Spans)
}

func TestOnlyTheFirstRunnerPublishes(t *testing.T) {
	t.Parallel()
	rt, r := newServiceVU(t, descriptionJS)
	r.plan.PublishRate = 0.01
	require.NoError(t, r.begin(rt.VU, "", "2"))
	require.Nil(t, shardOf(r).Published)

	rt, r = newServiceVU(t, descriptionJS)
	r.plan.PublishRate = 0.01
	for range 2 {
		require.ErrorContains(t, r.begin(rt.VU, "", "x"), "RUNNER must be the number of this runner", "without a publisher, no call may succeed")
	}

	rt, r = newServiceVU(t, descriptionJS)
	r.plan.PublishRate, r.plan.Seconds = 0.01, 20
	require.NoError(t, r.begin(rt.VU, "", "1"))
	require.NoError(t, r.begin(rt.VU, "", "1"))
	r.finish()
	got := shardOf(r).Published
	require.Equal(t, []string{"d-topic-0", "d-topic-1"}, got.Topics)
	require.False(t, got.Finished)
	require.Zero(t, got.Sums().Sent)
}

// A promise would become the token "[object Promise]".
func TestDescriptionFunctionsMustReturnText(t *testing.T) {
	t.Parallel()
	for returns, want := range map[string]string{
		`undefined`:            "the function must return a string, got nothing",
		`({a: 1})`:             "the function must return a string, got [object Object]",
		`Promise.resolve("x")`: "the function must return a string, got a promise; do not declare it async",
		`5`:                    "the function must return a string, got 5",
	} {
		rt, _ := newServiceVU(t, `var described = service({name: "any", token: () => `+returns+`, connect: {url: "{base}?t={token}"}, message: "unchecked"})`)
		_, err := serviceOf(t, rt).requestOverrides(0, "d-0")
		require.ErrorContains(t, err, "token() of the service any: "+want)
	}
}

func TestDescriptionMustBeData(t *testing.T) {
	t.Parallel()
	rt, _ := newVU(t)
	for script, want := range map[string]string{
		`var a = {}; a.a = a; service(a)`:                           "TypeError: Converting circular structure to JSON",
		`service({name: 1n})`:                                       "TypeError: Do not know how to serialize a BigInt",
		`service({get name() { throw new Error("broken getter")}})`: "Error: broken getter",
	} {
		_, err := rt.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, "encode the description as JSON: "+want)
		require.NotContains(t, err.Error(), "service-fm (native) at")
	}
}

// A service may repeat a token in its messages.
func TestFindingsHideTokens(t *testing.T) {
	t.Parallel()
	rt, _ := newVU(t)
	js(t, rt, `var __ENV = { SUBSCRIBE_TOKEN: "a-subscriber", PUBLISH_TOKEN: "a-publisher" }`)
	js(t, rt, descriptionJS)
	js(t, rt, planJS)
	rt.MoveToVUContext(&lib.State{Samples: make(chan metrics.SampleContainer, 1000), Tags: lib.NewVUStateTags(rt.VU.InitEnv().Registry.RootTagSet())})
	o := newStream(t, rt, "d-1")
	require.Equal(t, "you are {token}, and "+strings.Repeat("x", 43)+"…", o.credentials().excerpt([]byte("you are a-subscriber, and "+strings.Repeat("x", 100))))
	require.Equal(t, strings.Repeat("x", 60)+"{tok…", o.credentials().excerpt([]byte(strings.Repeat("x", 60)+"a-publisher")))
}
