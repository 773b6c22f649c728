package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A stage is a run that a test leads on, and its server.
type stage struct {
	*Server
	view *View
	tick chan time.Time
	unix int64
	n    int
}

func newStage(t *testing.T, address string) *stage {
	t.Helper()
	p := plan.Default()
	p.TestID, p.Connections, p.NoopInterval = "t", 600, 5
	s := &stage{view: &View{Watch: new(Watch), About: About{Plan: p, Title: "soak t", Service: shard.Service{Message: "noop"}, Total: time.Minute}}, tick: make(chan time.Time)}
	s.unix = time.Now().Unix()/5*5 - 600
	s.view.Start()
	var err error
	s.Server, err = Listen(address, s.view, s.tick)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// goOn has a runner say something, and the page take it.
func (s *stage) goOn() {
	s.n++
	s.view.Watch.Hear(1, &shard.Progress{
		Open: 600, Counts: ledger.Counts{Received: uint64(600 * s.n)}, Buckets: []shard.Bucket{bucket(s.unix, 600, time.Millisecond)},
		Found: []shard.Found{{AtMS: s.unix * 1000, ID: fmt.Sprintf("soak-%d", s.n), What: "1 missed"}},
	})
	s.unix += 5
	s.tick <- time.Now()
	s.tick <- time.Now() // which is taken when the one before is over; nothing is new in it
}

// heard is one event of the stream.
type heard struct{ id, name, data string }

// listen reads the stream after the event of that id.
func (s *stage) listen(t *testing.T, id string) (events <-chan heard, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(s.URL(), "/?", "/events?", 1), nil)
	require.NoError(t, err)
	if r.URL.Path == "/" {
		r.URL.Path = "/events"
	}
	r.Header.Set("Last-Event-ID", id)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	out := make(chan heard, 1000)
	go func() {
		defer close(out)
		defer answer.Body.Close()
		var e heard
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
				e = heard{}
			}
		}
	}()
	return out, cancel
}

func next(t *testing.T, events <-chan heard) heard {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(30 * time.Second):
		require.Fail(t, "no event came")
		return heard{}
	}
}

func TestAViewerThatComesBackMissesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	events, stop := s.listen(t, "")
	first := next(t, events)
	require.Equal(t, "snapshot", first.name)
	var all []heard
	for range 4 {
		s.goOn()
	}
	for len(all) == 0 || !strings.Contains(all[len(all)-1].data, "soak-4<") {
		all = append(all, next(t, events))
	}
	stop()
	s.goOn() // while nobody looks
	s.goOn()
	for i := range all {
		again, stop := s.listen(t, all[i].id)
		for _, want := range all[i+1:] {
			require.Equal(t, want, next(t, again))
		}
		missed := next(t, again)
		for !strings.Contains(missed.data, "soak-6<") {
			require.Equal(t, "delta", missed.name, "what is new since, and nothing else")
			missed = next(t, again)
		}
		stop()
	}
}

func TestWhoKnowsNothingGetsAll(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	events, stop := s.listen(t, "")
	defer stop()
	next(t, events)
	for range 3 {
		s.goOn()
	}
	epoch := s.log.epoch
	for _, id := range []string{"", "nonsense", "00000000-1", epoch + "-99999", epoch + "-x"} {
		other, stop := s.listen(t, id)
		e := next(t, other)
		require.Equal(t, "snapshot", e.name, id)
		require.Contains(t, e.data, "soak-1<")
		require.Contains(t, e.data, `"id":"connections"`)
		stop()
	}
	for n := range 2 * mostEvents { // the first ones are gone
		s.mu.Lock()
		s.add("delta", []byte(fmt.Sprint(n)))
		require.LessOrEqual(t, len(s.log.events), mostEvents)
		s.mu.Unlock()
	}
	other, stop := s.listen(t, epoch+"-2")
	defer stop()
	require.Equal(t, "snapshot", next(t, other).name)
}

// A page that a browser shows stands for the event whose id is in it: what comes after it is all that it lacks.
func TestPageAndEventsEscapeControlCharacters(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	s.view.About.Title = "soak \u009b31m\u202e"
	s.view.Watch.Hear(1, &shard.Progress{Found: []shard.Found{{AtMS: s.unix * 1000, ID: "soak-1", What: "\u009b31m\u202e"}}})
	events, stop := s.listen(t, "")
	defer stop()
	event := next(t, events).data
	require.True(t, json.Valid([]byte(event)))
	for name, text := range map[string]string{"page": get(t, s.URL(), http.StatusOK), "event": event} {
		require.Contains(t, text, `\u009b31m\u202e`, name)
		require.NotContains(t, text, "\u009b", name)
		require.NotContains(t, text, "\u202e", name)
	}
}

func TestThePageStandsForAnEvent(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	s.goOn()
	page := get(t, s.URL(), http.StatusOK)
	require.Contains(t, page, "soak-1<")
	_, id, _ := strings.Cut(page, `"live":"`)
	id, _, _ = strings.Cut(id, `"`)
	require.Contains(t, page, "connect-src &#39;self&#39;")
	events, stop := s.listen(t, id)
	defer stop()
	s.goOn()
	e := next(t, events)
	for !strings.Contains(e.data, "soak-2<") {
		e = next(t, events)
	}
	require.NotEqual(t, "snapshot", e.name)
}

func get(t *testing.T, url string, status int) string {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, status, answer.StatusCode, string(text))
	return string(text)
}

// One that does not read is cut off, and holds up nobody.
func TestASlowViewerIsCutOff(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	events, stop := s.listen(t, "")
	defer stop()
	next(t, events)
	s.mu.Lock()
	v := &viewer{key: "slow", events: make(chan event, queue)}
	s.viewers[v] = struct{}{}
	s.mu.Unlock()
	for n := range queue + 5 {
		s.mu.Lock()
		s.add("delta", []byte(fmt.Sprint(n)))
		s.mu.Unlock()
		require.Equal(t, fmt.Sprint(n), next(t, events).data, "others get all")
	}
	for n := range queue {
		require.Equal(t, fmt.Sprint(n), string((<-v.events).data))
	}
	_, open := <-v.events
	require.False(t, open)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotContains(t, s.viewers, v)
}

func TestOnlyWhoHasTheTokenLooksFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newStage(t, ":0")
	require.Regexp(t, `^http://[^/]+:\d+/\?token=[0-9a-f]{32}$`, s.URL())
	_, port, _ := strings.Cut(s.listener.Addr().String(), "]:")
	base := "http://127.0.0.1:" + port
	for _, path := range []string{"/", "/events", "/?token=", "/?token=" + strings.Repeat("0", 32)} {
		require.NotContains(t, get(t, base+path, http.StatusForbidden), s.token)
	}
	get(t, base+"/?token="+s.token, http.StatusOK)
}

// A page of another origin whose name leads to this machine must not read the run.
func TestALoopbackPageIsShownUnderItsAddressOnly(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	require.NotContains(t, s.URL(), "token")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL(), nil)
	require.NoError(t, err)
	r.Host = "evil.example"
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	get(t, strings.Replace(s.URL(), "127.0.0.1", "localhost", 1), http.StatusOK)
}

func TestPagesOfOtherSitesCannotRequestThePage(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	for _, tt := range []struct {
		header map[string]string
		want   int
	}{
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
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, tt.want, answer.StatusCode, tt.header)
	}
}

func TestThePageBecomesTheReport(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	events, stop := s.listen(t, "")
	defer stop()
	next(t, events)
	var finished sync.WaitGroup
	finished.Go(func() { s.Finish(t.Context(), []byte("<p>the report")) })
	require.Equal(t, "report", next(t, events).name)
	late, stopLate := s.listen(t, "any-1") // whose network was cut then
	defer stopLate()
	require.Equal(t, "report", next(t, late).name)
	require.Equal(t, "<p>the report", get(t, s.URL(), http.StatusOK))
	require.Equal(t, "<p>the report", get(t, s.URL(), http.StatusOK), "the other one, too")
	finished.Wait()
	_, err := http.Get(s.URL())
	require.Error(t, err, "nothing listens any more")
}

func TestNobodyIsWaitedForWhoDidNotLook(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	began := time.Now()
	s.Finish(t.Context(), []byte("x"))
	require.Less(t, time.Since(began), lingers/2)

	s = newStage(t, "127.0.0.1:0")
	events, stop := s.listen(t, "")
	defer stop()
	next(t, events)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Ctrl-C
	s.Finish(ctx, []byte("x"))
}

// While nobody looks no page is made, and nothing is kept: the run does not pay for what nobody sees.
func TestNothingIsMadeWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	for range 3 {
		s.goOn()
	}
	s.mu.Lock()
	require.Zero(t, s.log.number)
	s.wanted = time.Now().Add(-2 * idle)
	s.add("delta", []byte("1"))
	s.mu.Unlock()
	s.goOn()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.True(t, s.log.empty())
}

func TestAnAddressThatIsTakenIsSaid(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	_, err := Listen(s.listener.Addr().String(), s.view, nil)
	require.ErrorContains(t, err, "name another address")
}

// Each key is kept for the whole run.
func TestALongViewerKeyIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, "127.0.0.1:0")
	url := strings.TrimSuffix(s.URL(), "/") + "/events?viewer="
	require.Equal(t, "viewer must have at most 100 characters, got 101\n", get(t, url+strings.Repeat("k", 101), http.StatusBadRequest))
}

func TestTheConnectionLimitIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../SECURITY.md")
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("at most %d connections", maxConnections))
}
