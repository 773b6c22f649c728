package trial

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/test/fakeservice"
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

// runTrial tries hubDescription with some texts replaced.
func runTrial(t *testing.T, base string, c Config, replace ...string) error {
	t.Helper()
	s, err := service.Parse([]byte(strings.NewReplacer(replace...).Replace(hubDescription)))
	require.NoError(t, err)
	c.Service, c.Base, c.Topic, c.ID, c.Marker = s, base, "soak-topic-0", "trial", "run-1"
	if c.Patience == 0 {
		c.Patience = 5 * time.Second // a third of it for a message, a tenth for a replay
	}
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
			require.NoError(t, runTrial(t, c.hub.Start(t).URL, Config{}, c.replace...))
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
			"another number", &fakeservice.Hub{ID: func(int) string { return "7" }}, []string{"json:$.seq", "id"},
			`message.seq is "id", but the message that was published with the number 1 has 7 there: id: 7, data: …`,
		},
		{"marker", &fakeservice.Hub{}, []string{"json:$.run", "json:$.marker"}, `message.run is "json:$.marker", but the received message has no such value: data: {"run":"run-1-trial-…`},
		{"another marker", &fakeservice.Hub{}, []string{"json:$.run", "json:$.seq"}, `message.run is "json:$.seq", but the received message does not have the run's marker there: data: {"run":"run-1-trial-…`},
		{"time", &fakeservice.Hub{}, []string{"json:$.t", "json:$.time"}, `message.sentAt is "json:$.time", but the received message has no time there: data: …`},
		{"number as time", &fakeservice.Hub{}, []string{"json:$.t", "json:$.seq"}, `message.sentAt is "json:$.seq", but the received message has no time there: data: …`},
		{
			"another time", &fakeservice.Hub{Wrap: func(p string) string { return strings.Replace(p, `"t":1`, `"t":2`, 1) }}, nil,
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
			`connect.then.event is "hello", but no such event arrived within 3 s: one other block arrived, with event: HELLO, data: …`,
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
			base := c.hub.Start(t).URL
			err := runTrial(t, base, Config{Patience: 3 * time.Second}, c.replace...)
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
	h := &fakeservice.Hub{Token: "a", PubToken: "b"}
	base := h.Start(t).URL
	require.NoError(t, runTrial(t, base, Config{SubscribeToken: "a", PublishToken: "b", Patience: time.Minute}))
	require.ErrorContains(t, runTrial(t, base, Config{SubscribeToken: "a", PublishToken: "c", Patience: time.Minute}), "check that PUBLISH_TOKEN is valid for this topic")
	require.ErrorContains(t, runTrial(t, base, Config{SubscribeToken: "c", Patience: time.Minute}), "connect.headers: ")
}

func TestOtherContentTypeIsReported(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<p>\nhello"))
	}))
	defer server.Close()
	require.EqualError(t, runTrial(t, server.URL, Config{}),
		"connect.url: GET "+server.URL+"/sub/soak-topic-0 answered 200 with text/html, which is not an event stream; expected text/event-stream (<p> hello)")
}

func TestUnresponsiveServiceIsReported(t *testing.T) {
	t.Parallel()
	done := make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer server.Close()
	defer close(done)
	require.EqualError(t, runTrial(t, server.URL, Config{Patience: 2 * time.Second}),
		"connect.url: GET "+server.URL+"/sub/soak-topic-0: no response within 2 s; publish.url: POST "+server.URL+"/pub/soak-topic-0: no response within 2 s")
	require.ErrorContains(t, runTrial(t, "http://127.0.0.1:1", Config{}), "connect.url: GET http://127.0.0.1:1/sub/soak-topic-0: nothing listens there")
}

// The trial reads messages that a service sends by itself if they are frequent.
func TestMessagesThatAreDueAreAwaited(t *testing.T) {
	t.Parallel()
	generating := &fakeservice.Hub{Generate: func(_, n int) string { return "id: " + fakeservice.DecimalID(n) + "\ndata: 0\n\n" }, GenerateInterval: 50 * time.Millisecond}
	base := generating.Start(t).URL
	replace := func(message string) []string {
		return []string{hubDescription[strings.Index(hubDescription, `"message"`):], `"message":` + message + `}`}
	}
	require.NoError(t, runTrial(t, base, Config{}, replace(`{"data":"0","seq":"id","every":0.1}`)...))
	require.ErrorContains(t, runTrial(t, base, Config{}, replace(`{"data":"1","seq":"id","every":0.1}`)...), `message.data is "1", but the received message has other data: id: 1, data: 0`)
	quiet := &fakeservice.Hub{}
	require.EqualError(t, runTrial(t, quiet.Start(t).URL, Config{}, replace(`{"data":"0","seq":"id","every":0.1}`)...), "message.every is 0.1, but no message arrived within 2.1 s: nothing arrived")
}

// The machines of a run make their trials at the same time, with the same marker.
func TestTrialsOfSeveralMachinesDoNotMixUp(t *testing.T) {
	t.Parallel()
	h := fakeservice.Hub{Newcomers: true}
	base := h.Start(t).URL
	var failed [4]error
	var all sync.WaitGroup
	for i := range failed {
		all.Go(func() { failed[i] = runTrial(t, base, Config{}) })
	}
	all.Wait()
	require.Equal(t, [4]error{}, failed)
}

func TestTrialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{Lose: func(string, string) bool { return true }}
	s, err := service.Parse([]byte(hubDescription))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = Run(ctx, Config{Service: s, Base: h.Start(t).URL, Topic: "t", Marker: "m"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// The hub has no request that ends a stream, so this test has its own server.
func TestEndRequestIsTried(t *testing.T) {
	t.Parallel()
	end := make(chan bool, 1)
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(status)
			if r.URL.Path == "/trial" {
				end <- true
			}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	replace := func(url string) []string {
		return []string{hubDescription[strings.Index(hubDescription, `"message"`):], `"message":"unchecked","end":{"by":"request","url":"{base}/` + url + `"}}`}
	}
	require.NoError(t, runTrial(t, server.URL, Config{}, replace("{id}")...))
	require.EqualError(t, runTrial(t, server.URL, Config{Patience: 2 * time.Second}, replace("x")...), "end.url: the request was confirmed, but the stream was still open 2 s later")
	status = http.StatusNotFound
	require.EqualError(t, runTrial(t, server.URL, Config{}, replace("x")...), "end: DELETE "+server.URL+"/x answered 404 Not Found")
}

// A service may support only one stream per id.
func TestTrialHasOneStreamPerID(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	open := map[string]chan string{} // by id
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		mu.Lock()
		if r.Method == http.MethodPost {
			for _, stream := range open {
				stream <- r.URL.Query().Get("seq")
			}
			mu.Unlock()
			return
		}
		if r.Method == http.MethodDelete {
			if open[id] == nil {
				w.WriteHeader(http.StatusNotFound)
			} else {
				close(open[id])
			}
			mu.Unlock()
			return
		}
		stream := make(chan string, 10)
		open[id] = stream
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			delete(open, id)
		}()
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for {
			select {
			case seq, ok := <-stream:
				if !ok {
					return
				}
				_, _ = w.Write([]byte("data: " + seq + "\n\n"))
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer server.Close()
	s, err := service.Parse([]byte(`{"name":"mine","connect":{"url":"{base}/{topic}?id={id}"},"message":{"seq":"data"},
		"end":{"by":"request","url":"{base}/?id={id}"},"publish":{"url":"{base}/{topic}?seq={seq}"}}`))
	require.NoError(t, err)
	require.NoError(t, Run(t.Context(), Config{Service: s, Base: server.URL, Topic: "t", ID: "trial", Marker: "m", Patience: time.Second}))
}

// The trial requests the same compression as the run, unless the description has its own Accept-Encoding.
func TestTrialRequestsCompressionAsTheRunDoes(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{Gzip: 10 * time.Millisecond}
	origin := h.Start(t)
	var encoding string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			encoding = r.Header.Get("Accept-Encoding")
		}
		origin.ServeHTTP(w, r)
	}))
	defer front.Close()
	require.NoError(t, runTrial(t, front.URL, Config{AcceptEncoding: "gzip", SubscribeToken: "t"}))
	require.Equal(t, "gzip", encoding)
	require.NoError(t, runTrial(t, front.URL, Config{AcceptEncoding: "gzip", SubscribeToken: "t"}, `"headers":{`, `"headers":{"Accept-Encoding":"br",`))
	require.Equal(t, "br", encoding)
	require.NoError(t, runTrial(t, front.URL, Config{SubscribeToken: "t"}))
	require.Empty(t, encoding)
	h = &fakeservice.Hub{Gzip: time.Minute}
	require.ErrorContains(t, runTrial(t, h.Start(t).URL, Config{AcceptEncoding: "gzip", SubscribeToken: "t", Patience: 2 * time.Second}), "the service or a proxy may buffer compressed data (gzip)")
}

func TestLargeEventNamesTheField(t *testing.T) {
	t.Parallel()
	err := runTrial(t, (&fakeservice.Hub{}).Start(t).URL, Config{}, `"connect":{`, `"connect":{"maxEventSize":20,`)
	require.ErrorContains(t, err, "event exceeds the size limit of 20 bytes (one line); set connect.maxEventSize to a larger value")
}
