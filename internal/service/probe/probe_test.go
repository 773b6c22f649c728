package probe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/trial"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

const published = `"message":{"seq":"json:$.seq","run":"json:$.run","sentAt":"json:$.t","sum":"json:$.sum"}`

// requireTrial tries a description with one stream, if the description has publish.
func requireTrial(t *testing.T, d description, c Config) {
	t.Helper()
	if d.Publish != nil {
		require.NoError(t, trial.Run(t.Context(), trial.Config{Service: d.Service, Dial: c.Dial, Base: base, Topic: "room-1", ID: "x", Marker: "m", Patience: time.Second}))
	}
}

// The probe publishes to services that send no messages by themselves.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	every := func(interval time.Duration, generate func(stream, n int) string) *fakeservice.Hub {
		return &fakeservice.Hub{Generate: generate, GenerateInterval: interval}
	}
	var tick atomic.Int64
	const evil = "'};\u2028alert(1)//*/\\"
	const control = "\u009b31m\u202e\x1b]0;x\x07"
	large := strings.Repeat("x", 1<<16)
	for _, c := range []struct {
		name     string
		hub      *fakeservice.Hub
		want     []string // in the JSON or in the notes
		unwanted []string // in the JSON
	}{
		{
			"like nchan",
			&fakeservice.Hub{
				ID: func(n int) string { return fmt.Sprintf("1732250000:%d", n) }, History: true, OK: 201,
				Heartbeat: "event: ping\n\n", HeartbeatInterval: 300 * time.Millisecond,
			},
			[]string{
				published, `"heartbeat":{"event":"ping","every":0.3}`, `"resume":{"by":"header"}`, `"publish":{"url":"{base}/pub/{topic}"`, `"connect":{"url":"{base}/sub/{topic}"}`,
				"200 text/event-stream", "It received 3 of 3 missed messages.", "Examples of ids: 1732250000:2 and 1732250000:13.", "Not compressed with any", "13 messages were confirmed with 201", "no stream ended by itself", "A stream that requested an unknown id received no notice",
			},
			[]string{`"gap"`, `"end"`, `"token"`, `"ok"`, `"event":"message"`},
		},
		{
			"like Mercure",
			&fakeservice.Hub{
				ID: func(n int) string { return fmt.Sprintf("urn:uuid:5f0ac000-0000-4000-8000-%012d", n) }, History: true, GapHeader: "earliest",
				Heartbeat: ":\n", HeartbeatInterval: 500 * time.Millisecond, WhenSilent: true,
			},
			[]string{
				published, `"heartbeat":{"comment":true,"every":0.5}`, `"resume":{"by":"header","gap":{"header":"Last-Event-ID: earliest"}}`,
				"The ids were random", "without other data",
			},
			nil,
		},
		{
			"like django-eventstream",
			&fakeservice.Hub{
				ID: func(n int) string { return fmt.Sprintf("room-1:%d", n) }, Event: "message", History: true,
				GapEvent: "event: stream-reset\ndata: {}\n\n", Preamble: "event: stream-open\ndata:\n\n",
				Heartbeat: "event: keep-alive\ndata:\n\n", HeartbeatInterval: 400 * time.Millisecond, WhenSilent: true,
			},
			[]string{
				published, `"heartbeat":{"event":"keep-alive","every":0.4}`, `"resume":{"by":"header","gap":{"event":"stream-reset"}}`,
				"Each stream begins with the event 'stream-open'",
			},
			nil,
		},
		{
			"without ids",
			&fakeservice.Hub{Wrap: func(p string) string { return `{"a b":[1,` + p + `]}` }},
			[]string{
				`"message":{"seq":"json:$['a b'][1].seq","run":"json:$['a b'][1].run","sentAt":"json:$['a b'][1].t","sum":"json:$['a b'][1].sum"}`, `"resume":{"by":"none"}`,
				"The messages had no id.", "heartbeat: none was received; the longest silence",
			},
			[]string{`"heartbeat"`},
		},
		{
			"a greeting is a comment too",
			&fakeservice.Hub{Preamble: ": hi\n\n", Heartbeat: ": ping\n\n", HeartbeatInterval: 300 * time.Millisecond},
			[]string{`"heartbeat":{"comment":true,"every":0.3}`, "a comment (: ping)"},
			nil,
		},
		{
			"more than 1000 heartbeats per second",
			&fakeservice.Hub{Heartbeat: ":\n\n", HeartbeatInterval: 500 * time.Microsecond},
			[]string{`"heartbeat":{"comment":true,"every":0.001}`}, nil,
		},
		{
			"ids, but no message is sent again",
			&fakeservice.Hub{ID: fakeservice.DecimalID},
			[]string{`"resume":{"by":"none"}`, "It received 0 of 3 missed messages.", "A stream that requested an unknown id received no notice of missing messages."}, nil,
		},
		{
			"all messages are sent again, also to new streams",
			&fakeservice.Hub{ID: fakeservice.DecimalID, History: true, Newcomers: true},
			[]string{`"resume":{"by":"header"}`, "A new stream without that header received 3 of 3."}, nil,
		},
		{
			"nothing arrives",
			&fakeservice.Hub{Lose: func(string, string) bool { return true }},
			[]string{`"message":"unchecked"`, "13 published messages were confirmed (200), but did not arrive on any stream"}, []string{`"publish"`},
		},
		{
			"the text of messages is changed",
			&fakeservice.Hub{Wrap: strings.ToUpper},
			[]string{
				`"message":"unchecked"`, "Other events arrived, such as data: {\"RUN\":\"PROBE-", "the service changes or omits the published text",
				"Correct the requests, and probe again.",
			},
			[]string{`"publish"`},
		},
		{
			"the checksum does not arrive", // without publish, no message would arrive
			&fakeservice.Hub{Wrap: func(p string) string { return p[:strings.Index(p, `,"sum"`)] + "}" }},
			[]string{`"message":"unchecked"`, "seq was 'json:$.seq'. In every message this is the published number.", "Correct the requests, and probe again."},
			[]string{`"publish"`},
		},
		{
			"the number does not arrive",
			&fakeservice.Hub{Wrap: func(p string) string { return strings.ReplaceAll(p, `"seq":`, `"seq":900`) }},
			[]string{`"message":"unchecked"`, "message.seq: the number that was published was not found in the events"}, []string{`"publish"`},
		},
		{"another status", &fakeservice.Hub{OK: 207}, []string{`"ok":[207]`}, nil},
		{
			"data that is not UTF-8", &fakeservice.Hub{Wrap: func(p string) string { return "caf\xe9 " + p }},
			[]string{`"message":"unchecked"`, "message.seq: the data of the events is not UTF-8"}, []string{`"publish"`},
		},
		{"a redirect to a page", &fakeservice.Hub{OK: http.StatusSeeOther}, []string{`"ok":[303]`}, nil},
		{
			"gzip that delays events", &fakeservice.Hub{Gzip: 700 * time.Millisecond},
			[]string{published, "Accept-Encoding: gzip: compressed (gzip,", "events were delayed by up to 0.", "in bursts of", "Accept-Encoding: br: not compressed."}, nil,
		},
		{"gzip without delay", &fakeservice.Hub{Gzip: time.Millisecond}, []string{published, "no event was delayed"}, nil},
		{
			"streams that end", &fakeservice.Hub{Lifetime: 400 * time.Millisecond, Heartbeat: ":\n\n", HeartbeatInterval: 100 * time.Millisecond},
			[]string{`"end":{"by":"server","lifetime":[0.3,0.5]}`, "ended without a request from the probe, after 0.4"}, nil,
		},
		{
			"numbers per stream",
			every(100*time.Millisecond, func(_, n int) string {
				return fmt.Sprintf("id: %d\n: sent=%d\ndata: 0\n\n", n, time.Now().UnixMicro())
			}),
			[]string{
				`"message":{"data":"0","seq":"id","per":"stream","sentAt":"comment:^sent=([0-9]+)$"`,
				"It grew by one with each message of every stream: 1, 2, 3, 4", "A stream that was opened later began with 1, which no other stream received at that time.",
			},
			nil,
		},
		{
			"no number", every(100*time.Millisecond, func(int, int) string { return "data: 0\n\n" }),
			[]string{`"message":{"data":"0"`, "No value in the messages grew by one with each message."}, nil,
		},
		{
			"events of two names",
			every(50*time.Millisecond, func(_, n int) string {
				if n%3 == 0 {
					return fmt.Sprintf("event: state\ndata: {\"up\":%t}\n\n", n%2 == 0)
				}
				return fmt.Sprintf("event: news\nid: 77:%d\ndata: {\"v\":%d}\n\n", n-n/3, n)
			}),
			[]string{`"event":"news"`, `"seq":"id:^[0-9]+:([0-9]+)$"`, "Names of the events: 'news'"}, nil,
		},
		{
			"a heartbeat that is data",
			every(50*time.Millisecond, func(_, n int) string {
				if n%3 == 0 {
					return "data: {}\n\n"
				}
				return fmt.Sprintf("data: {\"pub\":{\"offset\":%d}}\n\n", n-n/3)
			}),
			[]string{`"heartbeat":{"data":"{}"`, `"seq":"json:$.pub.offset"`}, nil,
		},
		{
			"a counter of the whole service",
			every(100*time.Millisecond, func(stream, n int) string {
				return fmt.Sprintf("id: %d\ndata: {\"of\":%d}\n\n", 10*n+int(tick.Add(1)%3), stream)
			}),
			[]string{"the value at 'id' grows, but not always by one"}, nil,
		},
		{
			"large events and names",
			every(50*time.Millisecond, func(_, n int) string {
				return []string{"event: " + large + "\n", "", ""}[n%3] + "data: " + large + "\n\n"
			}),
			nil, nil,
		},
		{
			"control characters", // they can change how a terminal or an editor shows the description (CVE-2021-42574)
			every(50*time.Millisecond, func(_, n int) string {
				return fmt.Sprintf(": %s\nevent: a%s\ndata: {\"n\":%d}\n\n", control, control, n)
			}),
			[]string{`"event":"a` + "\u009b31m\u202e"}, nil,
		},
		{
			"data that would end a string or a comment",
			&fakeservice.Hub{Generate: func(_, n int) string {
				return fmt.Sprintf("event: %s\nid: %s\n: %s\ndata: {\"%s\":%d}\n\n", evil, evil, evil, strings.ReplaceAll(evil, `\`, `\\`), n)
			}, GenerateInterval: 50 * time.Millisecond, Heartbeat: ": " + evil + "\n\n", HeartbeatInterval: 300 * time.Millisecond},
			[]string{`"name":"probed"`}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var config Config
			if c.hub.Generate == nil {
				config.Publish = publishRequest
			}
			probe(t, c.hub, config, func(t *testing.T, d description, config Config) {
				for _, want := range c.want {
					require.Contains(t, d.json+d.notes, want)
				}
				for _, unwanted := range c.unwanted {
					require.NotContains(t, d.json, unwanted)
				}
				require.Less(t, len(d.module), 16<<10)
				require.Equal(t, format.Escape(d.module), d.module)
				require.NotContains(t, d.module, "\u2028")
				opened, peak := c.hub.StreamCounts()
				require.LessOrEqual(t, peak, 9)
				require.LessOrEqual(t, opened, 9+maxReopened)
				requireTrial(t, d, config)
			})
		})
	}
}

func TestValuesInPayloadsThatAreNotJSON(t *testing.T) {
	t.Parallel()
	form := Request{URL: "{base}/pub/{topic}", Body: "author=soak&text=run={run} seq={seq}"}
	d := probe(t, &fakeservice.Hub{Wrap: func(p string) string { return `{"text":"` + p[strings.LastIndex(p, "run="):] + `"}` }}, Config{Publish: form})
	require.Contains(t, d.json, `"message":{"seq":"data:\\bseq=([0-9]+)","run":"data:\\brun=([A-Za-z0-9._-]+)"}`)

	d = probe(t, &fakeservice.Hub{}, Config{Publish: Request{URL: "{base}/pub/{topic}", Body: "hello {run} number {seq}, at {sentAt}"}})
	reading := d.Reader("run-7").Read(&service.Block{Data: []byte("hello run-7 number 17, at 1732250000000000"), HasData: true})
	require.Equal(t, service.Reading{Kind: service.Delivery, Seq: 17, HasSeq: true, SentAt: 1732250000000000, HasSentAt: true}, reading)
}

// A chat forwards the text of a message, and adds its own fields.
func TestMessagesOfPlainText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{
			"run={run} seq={seq} t={sentAt} sum={sum}",
			`"message":{"seq":"data:\\bseq=([0-9]+)","run":"data:\\brun=([A-Za-z0-9._-]+)","sentAt":"data:\\bt=([0-9]+)","sum":"data:\\bsum=([0-9a-f]{8})"}`,
		},
		{
			"{run} {seq} {sentAt} {sum}",
			`"message":{"seq":"data:[A-Za-z0-9._-]+ ([0-9]+) [0-9]+ [0-9a-f]{8}","run":"data:([A-Za-z0-9._-]+) [0-9]+ [0-9]+ [0-9a-f]{8}",`,
		},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			n := 0
			h := &fakeservice.Hub{Wrap: func(payload string) string {
				var message struct{ Text string }
				require.NoError(t, json.Unmarshal([]byte(payload), &message))
				n++
				text, err := json.Marshal(map[string]any{"id": n, "author": "soak", "text": message.Text, "created_at": "2026-01-02T03:04:05Z"})
				require.NoError(t, err)
				return string(text)
			}, Heartbeat: ":\n\n", HeartbeatInterval: 300 * time.Millisecond}
			publish := Request{Method: "POST", URL: base + "/pub/room-1", Body: `{"author":"soak","text":"` + c.text + `"}`}
			d := probe(t, h, Config{Publish: publish}, requireTrial)
			require.NotNil(t, d.Publish)
			require.Contains(t, d.json, c.want)
		})
	}
}

func TestProbeErrors(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{Token: "x", PubToken: "y"}
	open := &fakeservice.Hub{PubToken: "y"}
	secured, other := h.Start(t).URL, open.Start(t).URL
	for _, c := range []struct {
		give Config
		want string
	}{
		{Config{URL: secured + "/sub/t"}, "GET " + secured + "/sub/t answered 401 Unauthorized (who are you?); pass credentials, such as --header 'Authorization: Bearer {token}' with SUBSCRIBE_TOKEN set"},
		{Config{URL: secured + "/nothing"}, "GET " + secured + "/nothing answered 404 Not Found (404 page not found); pass the URL of an event stream"},
		{Config{URL: "http://127.0.0.1:1/x"}, "GET http://127.0.0.1:1/x: nothing is listening there (connection refused)"},
		{Config{URL: other + "/sub/{topic}", Publish: publishRequest}, "POST " + other + "/pub/soak-probe answered 401 Unauthorized (no permission to publish); pass credentials, such as --publish-header 'Authorization: Bearer {token}' with PUBLISH_TOKEN set"},
		{Config{URL: other + "/sub/t", Publish: publishRequest}, "wrong: publish has {topic}, but connect does not; add {topic} to connect"},
		{Config{URL: other + "/sub/{tpoic}"}, "wrong: connect.url: unknown placeholder {tpoic}; did you mean {topic}? (known: {base}, {topic}, {n}, {id}, {run}, {token})"},
		{Config{URL: "localhost:8080"}, `wrong: the URL of the stream must begin with http:// or https:// and have a host, got "localhost:8080"`},
		{Config{URL: "http://a:b@x/"}, "wrong: the URL of the stream must not contain a user, because the URL becomes part of the description; pass --header 'Authorization: Basic …'"},
		{Config{URL: "http://x/", Connect: Request{Headers: []string{"X"}}}, `wrong: a header must have the form 'Name: value', got "X"`},
		{Config{URL: "http://x/", Connect: Request{Headers: []string{"Authorization: a", "Cookie: b"}}}, "wrong: two different secrets cannot both become {token}; use the same secret in all headers and URLs of connect and the second request, and one secret in publish"},
		{Config{URL: "http://x/", Publish: Request{URL: "http://a:b@y/"}}, `wrong: the URL of a request must begin with http:// or https:// and have no user, got "http://a:xxxxx@y/"`},
		{Config{URL: "http://x/", Publish: Request{Body: "{seq}"}}, "wrong: --publish-url is missing; set it to the URL of the request"},
		{Config{URL: "http://x/", Publish: Request{URL: "{base}/x", Body: "hello"}}, "wrong: publish must send {seq} in its url, headers or body, because message.seq reads it"},
	} {
		c.give.Streams, c.give.Length, c.give.Pace = 2, 20*time.Second, 10*time.Millisecond
		c.give.UsageError = func(err error) error { return fmt.Errorf("wrong: %w", err) }
		_, err := Run(t.Context(), c.give)
		require.EqualError(t, err, c.want)
	}
}

func TestTopicPlaceholder(t *testing.T) {
	for text, want := range map[string]string{
		"/sub/room": "/sub/{topic}", "/rooms/room/room2": "/rooms/{topic}/room2", "/room": "/{topic}", "/a-room": "/a-room",
		"/x?a=room&b=roomy": "/x?a={topic}&b=roomy", "/{room}": "/{room}", "/room/room": "/{topic}/{topic}",
	} {
		require.Equal(t, want, withTopic(text, "room"), text)
	}
	require.Equal(t, "/sub/{topic}", withTopic("/sub/a%20b", "a b"))
	require.Equal(t, "/x", withTopic("/x", ""))
}

func TestUnusedID(t *testing.T) {
	for id, want := range map[string]string{
		"17": "1000017", "1732250000:3": "1732250000:1000003", "a": "a-unused",
		"urn:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427": "urn:uuid:5f0ac000-0000-4000-8000-000000000000",
	} {
		require.Equal(t, want, unusedID(id))
	}
}

func TestFormatSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Microsecond: "0 s", 1200 * time.Microsecond: "0.001 s", 354 * time.Millisecond: "0.35 s", 9 * time.Second: "9 s", 75 * time.Second: "75 s",
	} {
		require.Equal(t, want, formatSeconds(d))
	}
}

func TestRoundInterval(t *testing.T) {
	for d, want := range map[time.Duration]float64{
		15*time.Second + 3*time.Millisecond: 15, 14990 * time.Millisecond: 15, 40 * time.Second: 40, 15600 * time.Millisecond: 16,
		101 * time.Millisecond: 0.1, 1010 * time.Millisecond: 1, 2030 * time.Millisecond: 2, 330 * time.Millisecond: 0.4, 4 * time.Millisecond: 0.004,
	} {
		require.InDelta(t, want, roundInterval(d), 1e-9, d)
	}
}

func TestStreamsThatEndImmediately(t *testing.T) {
	t.Parallel()
	d := probe(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
	}), Config{})
	require.NotContains(t, d.json, `"end"`)
	require.Contains(t, d.notes, "That is not a lifetime, because no stream stays open.")
}
