package trial

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/memory"
)

// hubDescription describes the hub. Tests replace parts of its text.
const hubDescription = `{"name":"mine","token":true,
"connect":{"url":"{base}/sub/{topic}","headers":{"Authorization":"Bearer {token}"}},
"message":{"seq":"json:$.seq","run":"json:$.run","sentAt":"json:$.t"},
"publish":{"url":"{base}/pub/{topic}","body":"{\"run\":\"{run}\",\"seq\":{seq},\"t\":{sentAt}}","headers":{"Authorization":"Bearer {token}"}}}`

// withChecksum adds replacements that put a checksum into each message. The description reads the checksum at place.
func withChecksum(place string, replace ...string) []string {
	return append(replace, `"sentAt":"json:$.t"}`, `"sentAt":"json:$.t","sum":"`+place+`"}`, `{sentAt}}`, `{sentAt},\"sum\":\"{sum}\"}`)
}

const base = "http://service.test"

// runTrial tries hubDescription with some texts replaced, against an in-memory server and with a fake clock.
func runTrial(t *testing.T, h http.Handler, c Config, replace ...string) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.Base, c.Dial = base, memory.Serve(t, h)
		err = try(t, c, replace...)
	})
	return err
}

// try tries hubDescription with some texts replaced.
func try(t *testing.T, c Config, replace ...string) error {
	t.Helper()
	s, err := service.Parse([]byte(strings.NewReplacer(replace...).Replace(hubDescription)))
	require.NoError(t, err)
	c.Service, c.Topic, c.ID, c.Marker = s, "soak-topic-0", "trial", "run-1"
	return Run(t.Context(), c)
}

func TestMatchingDescriptionPasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hub     *fakeservice.Hub
		replace []string
	}{
		"plain":   {&fakeservice.Hub{}, nil},
		"ids":     {&fakeservice.Hub{ID: fakeservice.DecimalID, Preamble: ": hello\n\nevent: open\ndata:\n\n", History: true}, nil},
		"wrapped": {&fakeservice.Hub{Wrap: func(p string) string { return `{"a":[` + p + `]}` }}, []string{"json:$.", "json:$.a[0]."}},
		"event":   {&fakeservice.Hub{Event: "news"}, []string{`"message":{`, `"message":{"event":["x","news"],`}},
		"comment as heartbeat": {
			&fakeservice.Hub{Heartbeat: ":\n", HeartbeatInterval: 100 * time.Millisecond},
			[]string{`"name"`, `"heartbeat":{"comment":true,"every":0.1},"name"`},
		},
		"an event as heartbeat": {
			&fakeservice.Hub{Heartbeat: "event: ping\n\n", HeartbeatInterval: 100 * time.Millisecond},
			[]string{`"name"`, `"heartbeat":{"event":"ping","every":0.1},"name"`},
		},
		"rare heartbeat":               {&fakeservice.Hub{}, []string{`"name"`, `"heartbeat":{"comment":true,"every":30},"name"`}},
		"201":                          {&fakeservice.Hub{OK: 201}, nil},
		"headers with the first event": {&fakeservice.Hub{LateHeaders: true}, nil},
		"headers with the first event, no marker": {&fakeservice.Hub{LateHeaders: true}, []string{`"run":"json:$.run",`, ``, `\"run\":\"{run}\",`, ``}},
		"large events": {&fakeservice.Hub{Wrap: func(p string) string { return strings.Replace(p, "{", `{"x":"`+strings.Repeat("x", 2<<20)+`",`, 1) }}, []string{`"connect":{`, `"connect":{"maxEventSize":3000000,`}},
		"checksum":     {&fakeservice.Hub{}, withChecksum("json:$.sum")},
		"no marker":    {&fakeservice.Hub{}, []string{`"run":"json:$.run",`, ``, `\"run\":\"{run}\",`, ``}},
		"by a second request": {&fakeservice.Hub{RequireJoin: true}, []string{
			`"connect":{`, `"connect":{"then":{"event":"HELLO","client":"json:$.client","url":"{base}/join","body":"{\"client\":\"{client}\",\"topic\":\"{topic}\"}"},`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, runTrial(t, c.hub, Config{}, c.replace...))
			opened, _ := c.hub.StreamCounts()
			require.LessOrEqual(t, opened, 2)
		})
	}
}

func TestMismatchNamesTheField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		hub     *fakeservice.Hub
		replace []string
		want    string
	}{
		{"publisher's token, headers with the first event", &fakeservice.Hub{PubToken: "x", LateHeaders: true}, nil, "connect.url: GET {base}/sub/soak-topic-0: no response within 3 s; publish: POST {base}/pub/soak-topic-0 answered 401 Unauthorized (no permission to publish); set PUBLISH_TOKEN"},
		{"path", &fakeservice.Hub{}, []string{"/sub/", "/subs/"}, "connect.url: GET {base}/subs/soak-topic-0 answered 404 Not Found (404 page not found)"},
		{"no token", &fakeservice.Hub{Token: "x"}, nil, "connect.headers: GET {base}/sub/soak-topic-0 answered 401 Unauthorized (who are you?); set SUBSCRIBE_TOKEN"},
		{"no token in the variable that the description names", &fakeservice.Hub{Token: "x"}, []string{`"token":true`, `"token":"BACKEND_TOKEN"`}, "connect.headers: GET {base}/sub/soak-topic-0 answered 401 Unauthorized (who are you?); set BACKEND_TOKEN"},
		{"publisher's token", &fakeservice.Hub{PubToken: "x"}, nil, "publish: POST {base}/pub/soak-topic-0 answered 401 Unauthorized (no permission to publish); set PUBLISH_TOKEN"},
		{
			"no token in the description", &fakeservice.Hub{PubToken: "x"}, []string{`,"headers":{"Authorization":"Bearer {token}"}}}`, `}}`},
			"publish: POST {base}/pub/soak-topic-0 answered 401 Unauthorized (no permission to publish); if the service requires a token, add a header with {token} and set PUBLISH_TOKEN",
		},
		{"path to publish", &fakeservice.Hub{}, []string{"/pub/", "/pubs/"}, "publish: POST {base}/pubs/soak-topic-0 answered 404 Not Found (404 page not found)"},
		{"status", &fakeservice.Hub{OK: 207}, nil, "publish.ok: POST {base}/pub/soak-topic-0 answered 207 Multi-Status, which the description does not accept as confirmation: publish.ok is not set"},
		{
			"number", &fakeservice.Hub{}, []string{"json:$.seq", "json:$.number"},
			`message.seq is "json:$.number", but the received message has no such value: data: {"run":"run-1-trial-…`,
		},
		{
			"text as number", &fakeservice.Hub{ID: func(int) string { return "x1" }}, []string{"json:$.seq", "id"},
			`message.seq is "id", but the received message has no whole number of at least 0 there: id: x1, data: {"run":"run-1-trial-…`,
		},
		{
			"the service's own number", &fakeservice.Hub{ID: strconv.Itoa}, []string{"json:$.seq", "id"},
			`message.seq is "id", but the message that was published with the number 1009 has 1 there: id: 1, data: …`,
		},
		{"marker", &fakeservice.Hub{}, []string{"json:$.run", "json:$.marker"}, `message.run is "json:$.marker", but the received message has no such value: data: {"run":"run-1-trial-…`},
		{"another marker", &fakeservice.Hub{}, []string{"json:$.run", "json:$.seq"}, `message.run is "json:$.seq", but the received message does not have the run's marker there: data: {"run":"run-1-trial-…`},
		{"time", &fakeservice.Hub{}, []string{"json:$.t", "json:$.time"}, `message.sentAt is "json:$.time", but the received message has no time there: data: …`},
		{"number as time", &fakeservice.Hub{}, []string{"json:$.t", "json:$.seq"}, `message.sentAt is "json:$.seq", but the received message has no time there: data: …`},
		{
			"another time", &fakeservice.Hub{Wrap: func(p string) string { return strings.Replace(p, `"t":9`, `"t":8`, 1) }}, nil,
			`message.sentAt is "json:$.t", but the time there is not the time with which the message was published: data: …`,
		},
		{"checksum", &fakeservice.Hub{}, withChecksum("json:$.crc"), `message.sum is "json:$.crc", but the received message has no checksum there, or the checksum of another number or time: data: …`},
		{"number, with a checksum", &fakeservice.Hub{}, withChecksum("json:$.sum", "json:$.seq", "json:$.number"), `message.seq is "json:$.number", but the received message has no such value: data: …`},
		{"marker, with a checksum", &fakeservice.Hub{}, withChecksum("json:$.sum", "json:$.run", "json:$.marker"), `message.run is "json:$.marker", but the received message does not have the run's marker there: data: …`},
		{"time, with a checksum", &fakeservice.Hub{}, withChecksum("json:$.sum", `"sentAt":"json:$.t"}`, `"sentAt":"json:$.time","sum":"json:$.sum"}`), `message.sentAt is "json:$.time", but the received message has no time there: data: …`},
		{"event", &fakeservice.Hub{Event: "news"}, []string{`"message":{`, `"message":{"event":"new",`}, `message.event is "new", but the received message has the event "news": event: news, data: …`},
		{"matches the heartbeat", &fakeservice.Hub{Event: "news"}, []string{`"name"`, `"heartbeat":{"event":"news"},"name"`}, `heartbeat is {"event":"news"}, but the received message matches it: event: news, data: …`},
		{"matches the gap", &fakeservice.Hub{Event: "news"}, []string{`"name"`, `"resume":{"by":"header","gap":{"event":"news"}},"name"`}, `resume.gap is {"event":"news"}, but the received message matches it: event: news, data: …`},
		{"no JSON", &fakeservice.Hub{Wrap: func(p string) string { return p + "]" }}, nil, `message.seq is "json:$.seq", but the data of the received message is not JSON: data: …`},
		{
			"no JSON, read only for the checksum", &fakeservice.Hub{Wrap: func(p string) string { return p + "]" }},
			withChecksum("json:$.sum", `"seq":"json:$.seq","run":"json:$.run","sentAt":"json:$.t"}`, `"seq":"data:seq.:([0-9]+)","run":"data:(run-[A-Za-z0-9-]+)","sentAt":"data:t.:([0-9]+)","sum":"json:$.sum"}`),
			`message.sum is "json:$.sum", but the data of the received message is not JSON: data: …`,
		},
		{
			"no heartbeat", &fakeservice.Hub{Heartbeat: ":\n\n", HeartbeatInterval: 100 * time.Millisecond}, []string{`"name"`, `"heartbeat":{"event":"ping","every":0.1},"name"`},
			`heartbeat is {"event":"ping","every":0.1}, but no heartbeat arrived within 2.1 s: …`,
		},
		{
			"nothing arrives", &fakeservice.Hub{Lose: func(string, string) bool { return true }}, nil,
			"publish.url: POST {base}/pub/soak-topic-0 was confirmed, but the message did not arrive at GET {base}/sub/soak-topic-0 within 3 s: nothing arrived; check that both requests use the topic soak-topic-0",
		},
		{"the stream ends", &fakeservice.Hub{Lifetime: 20 * time.Millisecond, Lose: func(string, string) bool { return true }}, nil, "connect.url: the stream ended …"},
		{
			"replayed, without a marker", &fakeservice.Hub{Newcomers: true}, []string{`"run":"json:$.run",`, ``, `\"run\":\"{run}\",`, ``},
			"message.run is not set, but a new stream receives earlier messages, …",
		},
		{
			"wrong path without a marker", &fakeservice.Hub{}, []string{`"run":"json:$.run",`, ``, `\"run\":\"{run}\",`, ``, "json:$.seq", "json:$.n"},
			`message.seq is "json:$.n", but the received message has no such value: data: …`,
		},
		{
			"another first event", &fakeservice.Hub{RequireJoin: true}, []string{`"connect":{`, `"connect":{"then":{"event":"hello","url":"{base}/join"},`},
			`connect.then.event is "hello", but no such event arrived within 3 s: one block arrived, with event: HELLO, data: …`,
		},
		{
			"no client in the first event", &fakeservice.Hub{RequireJoin: true}, []string{`"connect":{`, `"connect":{"then":{"event":"HELLO","client":"json:$.id","url":"{base}/join"},`},
			`connect.then.client is "json:$.id", but the received event "HELLO" has no such value: event: HELLO, data: …`,
		},
		{
			"second request", &fakeservice.Hub{RequireJoin: true}, []string{`"connect":{`, `"connect":{"then":{"event":"HELLO","url":"{base}/join","body":"{}"},`},
			"connect.then: POST {base}/join answered 404 Not Found (404 page not found)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := runTrial(t, c.hub, Config{Patience: 3 * time.Second}, c.replace...)
			require.Error(t, err)
			want, isPrefix := strings.CutSuffix(strings.ReplaceAll(c.want, "{base}", base), "…")
			if isPrefix {
				require.True(t, strings.HasPrefix(err.Error(), want), "want %s\n got %s", want, err)
			} else {
				require.Equal(t, want, err.Error())
			}
		})
	}
}

func TestTokensAreSent(t *testing.T) {
	t.Parallel()
	try := func(c Config) error { return runTrial(t, &fakeservice.Hub{Token: "a", PubToken: "b"}, c) }
	require.NoError(t, try(Config{SubscribeToken: "a", PublishToken: "b"}))
	require.ErrorContains(t, try(Config{SubscribeToken: "a", PublishToken: "c"}), "check that PUBLISH_TOKEN is valid for this topic")
	require.ErrorContains(t, try(Config{SubscribeToken: "c"}), "connect.headers: ")
}

// handlerFor returns a handler that passes requests with the method to h, and other requests to a hub.
func handlerFor(method string, h http.HandlerFunc) http.Handler {
	hub := new(fakeservice.Hub)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method {
			h(w, r)
			return
		}
		hub.ServeHTTP(w, r)
	})
}

func TestServerErrorsAreReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server http.Handler
		want   string
	}{
		{
			handlerFor(http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte("<p>\nhello"))
			}),
			"connect.url: GET " + base + "/sub/soak-topic-0 answered 200 with text/html (<p> hello), which is not an event stream; set connect.url to the URL of an event stream",
		},
		{
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // net/http detects the end of the connection only after the body
				<-r.Context().Done()
			}),
			"connect.url: GET " + base + "/sub/soak-topic-0: no response within 10 s; publish.url: POST " + base + "/pub/soak-topic-0: no response within 10 s",
		},
		{ // the publisher of a run follows no redirects
			handlerFor(http.MethodPost, http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect).ServeHTTP),
			"publish.url: POST " + base + "/pub/soak-topic-0 answered 307 Temporary Redirect, to /elsewhere, and a run does not follow this redirect; set publish.url to the final URL, or add the status to publish.ok if it confirms the request",
		},
	} {
		require.EqualError(t, runTrial(t, c.server, Config{FollowRedirects: true}), c.want)
	}
	err := runTrial(t, &fakeservice.Hub{}, Config{}, `"connect":{`, `"connect":{"maxEventSize":20,`)
	require.ErrorContains(t, err, "event exceeds the size limit of 20 bytes (one line); set connect.maxEventSize to a larger value")
}

// withoutPublish returns a replacement of the fields message and publish of hubDescription.
func withoutPublish(message string) []string {
	return []string{hubDescription[strings.Index(hubDescription, `"message"`):], `"message":` + message + `}`}
}

// If a service frequently sends messages by itself, the trial reads them.
func TestMessagesThatAreDueAreAwaited(t *testing.T) {
	t.Parallel()
	generate := func(_, n int) string { return "id: " + fakeservice.DecimalID(n) + "\ndata: 0\n\n" }
	try := func(interval time.Duration, message string) error {
		return runTrial(t, &fakeservice.Hub{Generate: generate, GenerateInterval: interval}, Config{}, withoutPublish(message)...)
	}
	require.NoError(t, try(50*time.Millisecond, `{"data":"0","seq":"id","every":0.1}`))
	require.ErrorContains(t, try(50*time.Millisecond, `{"data":"1","seq":"id","every":0.1}`), `message.data is "1", but the received message has other data: id: 1, data: 0`)
	require.EqualError(t, try(0, `{"data":"0","seq":"id","every":0.1}`), "message.every is 0.1, but no message arrived within 2.1 s: nothing arrived")
}

// The machines of a run start their trials at the same time, with the same marker.
func TestTrialsOfSeveralMachinesDoNotInterfere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial := memory.Serve(t, &fakeservice.Hub{Newcomers: true})
		var failed [4]error
		var all sync.WaitGroup
		for i := range failed {
			all.Go(func() { failed[i] = try(t, Config{Base: base, Dial: dial}) })
		}
		all.Wait()
		require.Equal(t, [4]error{}, failed)
	})
}

func TestTrialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := service.Parse([]byte(hubDescription))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		h := &fakeservice.Hub{Lose: func(string, string) bool { return true }}
		require.ErrorIs(t, Run(ctx, Config{Service: s, Base: base, Dial: memory.Serve(t, h), Topic: "t", Marker: "m"}), context.DeadlineExceeded)
	})
}

func TestEndRequestIsTried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ends   bool
		status int
		want   string
	}{
		{true, http.StatusOK, ""},
		{false, http.StatusOK, "end.url: the request was confirmed, but the stream was still open 10 s later"},
		{false, http.StatusNotFound, "end: DELETE " + base + "/trial answered 404 Not Found"},
		{false, http.StatusSeeOther, "end.url: DELETE " + base + "/trial answered 303 See Other, to /elsewhere?by={token}, and a run does not follow this redirect; set end.url to the final URL, or add the status to end.ok if it confirms the request"},
	} {
		hub := new(fakeservice.Hub)
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodDelete {
				hub.ServeHTTP(w, r)
				return
			}
			if c.status == http.StatusSeeOther {
				w.Header().Set("Location", "/elsewhere?by=a-subscriber")
			}
			w.WriteHeader(c.status)
			if c.ends && r.URL.Path == "/trial" {
				hub.Send("soak-topic-0", "")
			}
		})
		err := runTrial(t, server, Config{SubscribeToken: "a-subscriber"}, withoutPublish(`"unchecked","end":{"by":"request","url":"{base}/{id}"}`)...)
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.want)
		}
	}
}

// A service may support only one stream per id.
func TestTrialHasOneStreamPerID(t *testing.T) {
	t.Parallel()
	var ids []string
	hub := new(fakeservice.Hub)
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			ids = append(ids, r.URL.Query().Get("id"))
		}
		hub.ServeHTTP(w, r)
	})
	require.NoError(t, runTrial(t, server, Config{}, `/sub/{topic}`, `/sub/{topic}?id={id}`, `"run":"json:$.run",`, ``, `\"run\":\"{run}\",`, ``))
	require.Equal(t, []string{"trial", "trial-again"}, ids)
}

// The trial requests the same compression as the run, unless the description has its own Accept-Encoding.
func TestTrialRequestsCompressionAsTheRunDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		setting string
		replace []string
		want    string
	}{
		{"gzip", nil, "gzip"}, {"gzip", []string{`"headers":{`, `"headers":{"Accept-Encoding":"br",`}, "br"}, {"", nil, ""},
	} {
		hub := &fakeservice.Hub{Gzip: 10 * time.Millisecond}
		var encoding string
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				encoding = r.Header.Get("Accept-Encoding")
			}
			hub.ServeHTTP(w, r)
		})
		require.NoError(t, runTrial(t, server, Config{AcceptEncoding: c.setting}, c.replace...))
		require.Equal(t, c.want, encoding)
	}
	err := runTrial(t, &fakeservice.Hub{Gzip: time.Minute}, Config{AcceptEncoding: "gzip"})
	require.ErrorContains(t, err, "the service or a proxy may buffer compressed data (gzip)")
}
