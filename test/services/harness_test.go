package services

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/test/module"
	"github.com/sse-soak/sse-soak/test/untested"
)

// deadline is longer than any operation of these tests on a busy machine.
const deadline = 20 * time.Second

// These tests wait most of the time: more of them at once than there are cores.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// startService starts a service for a test, and reads its description.
func startService(t *testing.T, name string, o Options) (*Instance, *service.Service) {
	t.Helper()
	r, err := Start(t.Context(), name, o)
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		untested.SkipMissing(t, err.Error())
	}
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	t.Log(r.Name, r.Version)
	return r, description(t, r.Service)
}

// description loads a module as k6 does: a name stands for one of load-tests/services.
func description(t testing.TB, named string) *service.Service {
	t.Helper()
	file := named
	if !strings.Contains(file, "/") {
		file = filepath.Join("..", "..", "load-tests", "services", named+".js")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	s, err := service.Parse(module.Evaluate(t, string(text)))
	require.NoError(t, err, named)
	return s
}

// A received is an event of a stream, with its time.
type received struct {
	service.Reading
	event string
	id    string // the last event ID after it
	at    time.Time
}

// A stream is a subscriber.
type stream struct {
	header http.Header
	cut    func()

	mutex    sync.Mutex
	received []received
	ended    error
}

// subscribe opens a stream by the description, and returns once it is open: after its second request, if it has one.
// lastID is sent if it is not empty.
func subscribe(t *testing.T, r *Instance, s *service.Service, v service.Values, lastID string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	request := fill(t, ctx, &s.Connect, v)
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.True(t, s.Connect.Accepts(response.StatusCode), "%s %s", request.URL, response.Status)
	require.Contains(t, response.Header.Get("Content-Type"), "text/event-stream")
	out := &stream{header: response.Header, cut: cancel}
	open := make(chan struct{})
	if s.SecondRequest == nil {
		close(open)
	}
	go out.read(t, ctx, response.Body, s, v, open)
	select {
	case <-open:
	case <-time.After(deadline):
		require.Fail(t, "the second request is not confirmed")
	}
	if r.Name == "django-eventstream" {
		// It sends its headers before it has subscribed.
		require.Eventually(t, func() bool { return out.has("stream-open") }, deadline, time.Millisecond)
	}
	return out
}

// has reports whether an event of that name arrived.
func (s *stream) has(event string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.ContainsFunc(s.received, func(g received) bool { return g.event == event })
}

func (s *stream) read(t *testing.T, ctx context.Context, body io.ReadCloser, by *service.Service, v service.Values, open chan struct{}) {
	defer body.Close()
	parser, reader := eventstream.New(body), by.Reader(v.Run)
	for {
		var b eventstream.Block
		part, err := parser.NextPart(&b)
		if err != nil {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.ended = err
			return
		}
		if part == eventstream.WholeBlock && len(b.Data) == 0 && len(b.Name) == 0 && b.HasComment {
			continue // its comments came line by line
		}
		block := &service.Block{
			Event: b.Name, Data: b.Data, Comment: b.Comment, ID: b.ID,
			HasData: b.HasData, HasComment: b.HasComment || part == eventstream.CommentLine, HasID: b.HasID,
		}
		if client, ok := by.Client(block); ok {
			v.Client = client
			response, err := http.DefaultClient.Do(fill(t, ctx, &by.SecondRequest.Request, v))
			if err == nil && by.SecondRequest.Accepts(response.StatusCode) {
				close(open)
			}
			_ = response.Body.Close()
		}
		reading := reader.Read(block)
		reading.ID = nil // lies in the block
		s.mutex.Lock()
		s.received = append(s.received, received{reading, string(b.Name), string(b.ID), time.Now()})
		s.mutex.Unlock()
	}
}

// ofKind returns the readings of a kind so far.
func (s *stream) ofKind(kind service.Kind) (out []received) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, g := range s.received {
		if g.Kind == kind {
			out = append(out, g)
		}
	}
	return out
}

// numbers returns the numbers of the messages so far; 0 stands for a corrupted one.
func (s *stream) numbers() []int64 {
	out := []int64{}
	for _, g := range s.ofKind(service.Delivery) {
		out = append(out, g.Seq)
	}
	return out
}

func (s *stream) end() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ended
}

// fill makes a request of templates.
func fill(t *testing.T, ctx context.Context, r *service.Request, v service.Values) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, r.Method, string(r.URL.Append(nil, &v)), strings.NewReader(string(r.Body.Append(nil, &v))))
	require.NoError(t, err)
	for name, value := range r.FilledHeaders(&v) {
		request.Header.Set(name, value)
	}
	return request
}

// publish publishes a message, and answers the status.
func publish(t *testing.T, r *Instance, s *service.Service, v service.Values, seq int64) int {
	t.Helper()
	v.Seq, v.SentAt, v.Token = seq, time.Now().UnixMicro(), r.PublishToken
	response, err := http.DefaultClient.Do(fill(t, t.Context(), s.Publish, v))
	require.NoError(t, err)
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	require.True(t, s.Publish.Accepts(response.StatusCode), "%s: %s", response.Status, body)
	return response.StatusCode
}
