package live

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A testServer is a Server of a run that a test advances.
type testServer struct {
	*Server
	view *View
	unix int64
	n    int
}

func newTestServer(t *testing.T, address string) *testServer {
	t.Helper()
	p := plan.Default()
	p.TestID, p.Connections, p.NoopInterval = "t", 600, 5
	s := &testServer{view: &View{Watch: new(Watch), Header: Header{Plan: p, Title: "soak t", Service: shard.Service{Message: "noop"}, Total: time.Minute}}}
	s.unix = time.Now().Unix()/5*5 - 600
	s.view.Start(time.Now())
	var err error
	s.Server, err = Listen(address, s.view, time.Hour)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// update adds a report of a runner, and updates the page.
func (s *testServer) update() {
	s.n++
	s.view.Watch.Add(1, &shard.Progress{
		Open: 600, Counts: ledger.Counts{Received: uint64(600 * s.n)}, Buckets: []shard.Bucket{bucket(s.unix, 600, time.Millisecond)},
		Found: []shard.FoundFault{{AtMS: s.unix * 1000, ID: fmt.Sprintf("soak-%d", s.n), Text: "1 missed"}},
	})
	s.unix += 5
	s.publish()
}

type liveEvent struct{ id, name, data string }

// listen reads the events after the event with the given id.
func (s *testServer) listen(t *testing.T, id string) (events <-chan liveEvent, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(s.URL(), "/?", "/events?", 1), nil)
	require.NoError(t, err)
	if r.URL.Path == "/" {
		r.URL.Path = "/events"
	}
	query := r.URL.Query()
	query.Set("viewer", rand.Text()) // two viewers may share a connection, whose address is the default key
	r.URL.RawQuery = query.Encode()
	r.Header.Set("Last-Event-ID", id)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	out := make(chan liveEvent, 1000)
	go func() {
		defer close(out)
		defer answer.Body.Close()
		var e liveEvent
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					out <- e
				}
				e = liveEvent{}
			}
		}
	}()
	return out, cancel
}

func nextEvent(t *testing.T, events <-chan liveEvent) liveEvent {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(30 * time.Second):
		require.Fail(t, "no event arrived")
		return liveEvent{}
	}
}

func TestReconnectedViewerMissesNothing(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "127.0.0.1:0")
	events, stop := s.listen(t, "")
	received := []liveEvent{nextEvent(t, events)}
	require.ElementsMatch(t, []string{"now", "tiles", "findings", "timelines", "runners"}, partsOf(t, received[0]), "a new viewer must receive the whole page")
	for n := range 4 {
		s.update()
		for !strings.Contains(received[len(received)-1].data, fmt.Sprintf("soak-%d<", n+1)) {
			received = append(received, nextEvent(t, events))
		}
	}
	stop()
	s.update() // without a viewer
	s.update()
	for _, e := range received {
		second, stop := s.listen(t, e.id)
		missed := nextEvent(t, second)
		require.Contains(t, missed.data, "soak-6<")
		require.Contains(t, missed.data, "soak-1<", "a changed section must be sent completely")
		stop()
	}
	for _, id := range []string{"", "nonsense", "00000000-1", s.epoch + "-99999", s.epoch + "-x", finalID} { // unknown events
		second, stop := s.listen(t, id)
		require.Len(t, partsOf(t, nextEvent(t, second)), 5, id)
		stop()
	}
}

func partsOf(t *testing.T, e liveEvent) []string {
	t.Helper()
	require.Equal(t, "parts", e.name)
	var parts map[string]struct{ HTML string }
	require.NoError(t, json.Unmarshal([]byte(e.data), &parts))
	for id, p := range parts {
		require.Contains(t, p.HTML, `id="`+id+`"`)
	}
	return slices.Collect(maps.Keys(parts))
}

func TestPageAndEventsEscapeControlCharacters(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "127.0.0.1:0")
	s.view.Header.Title = "soak \u009b31m\u202e"
	s.view.Watch.Add(1, &shard.Progress{Found: []shard.FoundFault{{AtMS: s.unix * 1000, ID: "soak-1", Text: "\u009b31m\u202e"}}})
	events, stop := s.listen(t, "")
	defer stop()
	event := nextEvent(t, events).data
	require.True(t, json.Valid([]byte(event)))
	for name, text := range map[string]string{"page": fetchPage(t, s.URL(), http.StatusOK), "event": event} {
		require.Contains(t, text, `\u009b31m\u202e`, name)
		require.NotContains(t, text, "\u009b", name)
		require.NotContains(t, text, "\u202e", name)
	}
}

// The page contains the id of the last event, so its stream begins with the next change. An event has only the parts
// that changed.
func TestPageHasAnEventID(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "127.0.0.1:0")
	s.update()
	page := fetchPage(t, s.URL(), http.StatusOK)
	require.Contains(t, page, "soak-1<")
	require.Contains(t, page, "connect-src &#39;self&#39;")
	_, id, _ := strings.Cut(page, `"live":"`)
	id, _, _ = strings.Cut(id, `"`)
	events, stop := s.listen(t, id)
	defer stop()
	s.view.Watch.Note("action deploy started")
	s.publish()
	e := nextEvent(t, events)
	for !strings.Contains(e.data, "deploy") { // skips events that change only the clock of the page
		e = nextEvent(t, events)
	}
	require.Contains(t, partsOf(t, e), "findings")
	require.NotContains(t, partsOf(t, e), "runners")
}

func fetchPage(t *testing.T, url string, status int) string {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, status, answer.StatusCode, string(text))
	return string(text)
}

func TestRemoteViewersNeedTheToken(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, ":0")
	require.Regexp(t, `^http://[^/]+:\d+/\?token=[0-9a-f]{32}$`, s.URL())
	_, port, _ := strings.Cut(s.listener.Addr().String(), "]:")
	base := "http://127.0.0.1:" + port
	for _, path := range []string{"/", "/events", "/?token=", "/?token=" + strings.Repeat("0", 32)} {
		require.NotContains(t, fetchPage(t, base+path, http.StatusForbidden), s.token)
	}
	fetchPage(t, base+"/?token="+s.token, http.StatusOK)
}

// A page of another site must not load the machine. A page of a host whose name resolves to this machine must not read
// the run.
func TestOtherSitesAreRejected(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "127.0.0.1:0")
	require.NotContains(t, s.URL(), "token")
	for _, tt := range []struct {
		header map[string]string
		want   int
	}{
		{map[string]string{"Host": "evil.example"}, http.StatusForbidden},
		{map[string]string{"Host": strings.Replace(s.listener.Addr().String(), "127.0.0.1", "localhost", 1)}, http.StatusOK},
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, http.StatusForbidden},
		{map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, http.StatusForbidden},
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, http.StatusForbidden},
		{map[string]string{"Origin": "http://evil.example"}, http.StatusForbidden},
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, http.StatusOK},
		{map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, http.StatusOK},
		{map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": strings.TrimSuffix(s.URL(), "/")}, http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL(), nil)
		require.NoError(t, err)
		for name, value := range tt.header {
			r.Header.Set(name, value)
		}
		r.Host = tt.header["Host"]
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, tt.want, answer.StatusCode, tt.header)
	}
}

// The last request of a viewer may be older than viewerGrace, because a page sends none while it receives events.
func TestPageBecomesReport(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "127.0.0.1:0")
	events, stop := s.listen(t, "")
	defer stop()
	nextEvent(t, events)
	s.mu.Lock()
	for key := range s.pendingViewers {
		s.pendingViewers[key] = time.Now().Add(-2 * viewerGrace)
	}
	s.mu.Unlock()
	var finished sync.WaitGroup
	finished.Go(func() { s.Finish(t.Context(), []byte("<p>the report")) })
	require.Equal(t, "report", nextEvent(t, events).name)
	late, stopLate := s.listen(t, "any-1")
	defer stopLate()
	require.Equal(t, "report", nextEvent(t, late).name)
	for range 2 {
		require.Equal(t, "<p>the report", fetchPage(t, s.URL(), http.StatusOK), "each request must get the report")
	}
	finished.Wait()
	_, err := http.Get(s.URL())
	require.Error(t, err, "the server still listens")
}

func TestFinishWithoutViewers(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "127.0.0.1:0")
	start := time.Now()
	s.Finish(t.Context(), []byte("x"))
	require.Less(t, time.Since(start), finishTimeout/2)

	s = newTestServer(t, "127.0.0.1:0")
	events, stop := s.listen(t, "")
	defer stop()
	nextEvent(t, events)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Ctrl-C
	s.Finish(ctx, []byte("x"))
}

func TestPageIsNotRenderedWithoutViewers(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "127.0.0.1:0")
	for range 3 {
		s.update()
	}
	s.mu.Lock()
	require.Zero(t, s.number)
	s.mu.Unlock()
	_, err := Listen(s.listener.Addr().String(), s.view, time.Hour)
	require.ErrorContains(t, err, "name another address")
}

// The server stores each key, so its length must be limited.
func TestLongViewerKeyIsRejected(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "127.0.0.1:0")
	url := strings.TrimSuffix(s.URL(), "/") + "/events?viewer="
	require.Equal(t, "viewer must have at most 100 bytes, got 101\n", fetchPage(t, url+strings.Repeat("k", 101), http.StatusBadRequest))
}

func TestTheConnectionLimitIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../SECURITY.md")
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("at most %d connections", maxConnections))
}
