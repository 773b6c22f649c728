package services

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
	"github.com/sse-soak/sse-soak/test/module"
	"github.com/sse-soak/sse-soak/test/untested"
)

// deadline is longer than any operation of these tests on a busy machine.
const deadline = 20 * time.Second

// These tests mostly wait, so more of them run in parallel than there are cores.
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

// description loads a module as k6 does: a name selects one of load-tests/services.
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

// A subscriber reads a stream.
type subscriber struct {
	*stream.Stream

	mutex    sync.Mutex
	received []received
	ended    error
}

// subscribe opens a stream by the description, and returns once it is open: after its second request, if it has one.
// lastID is sent if it is not empty.
func subscribe(t *testing.T, r *Instance, s *service.Service, v service.Values, lastID string) *subscriber {
	t.Helper()
	request := stream.Fill(&s.Connect, &v)
	request.LastEventID = lastID
	opened, err := new(stream.Client).Open(t.Context(), request)
	require.NoError(t, err)
	t.Cleanup(opened.Close)
	require.True(t, s.Connect.Accepts(opened.Status), "%s %d", request, opened.Status)
	require.Contains(t, opened.Header.Get("Content-Type"), "text/event-stream")
	out := &subscriber{Stream: opened}
	open := make(chan struct{})
	if s.SecondRequest == nil {
		close(open)
	}
	go out.read(s, v, open)
	select {
	case <-open:
	case <-time.After(deadline):
		require.Fail(t, "the second request was not accepted")
	}
	if r.Name == "django-eventstream" {
		// The service sends its headers before the subscription is complete.
		require.Eventually(t, func() bool { return out.has("stream-open") }, deadline, time.Millisecond)
	}
	return out
}

// has reports whether an event of that name arrived.
func (s *subscriber) has(event string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.ContainsFunc(s.received, func(g received) bool { return g.event == event })
}

func (s *subscriber) read(description *service.Service, v service.Values, open chan struct{}) {
	reader := description.Reader(v.Run)
	for {
		part, err := s.Next()
		if err != nil {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.ended = err
			return
		}
		if !part.Line && len(part.Data) == 0 && len(part.Event) == 0 && part.HasComment {
			continue // comments are reported line by line
		}
		if client, ok := description.Client(&part.Block); ok {
			v.Client = client
			answer, err := new(stream.Client).Do(s.Context(), stream.Fill(&description.SecondRequest.Request, &v))
			if err == nil && description.SecondRequest.Accepts(answer.Status) {
				close(open)
			}
		}
		reading := reader.Read(&part.Block)
		s.mutex.Lock()
		s.received = append(s.received, received{reading, string(part.Event), s.LastEventID(), part.At})
		s.mutex.Unlock()
	}
}

// ofKind returns the readings of a kind so far.
func (s *subscriber) ofKind(kind service.Kind) (out []received) {
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
func (s *subscriber) numbers() []int64 {
	out := []int64{}
	for _, g := range s.ofKind(service.Delivery) {
		out = append(out, g.Seq)
	}
	return out
}

func (s *subscriber) end() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ended
}

// publish publishes a message.
func publish(t *testing.T, r *Instance, s *service.Service, v service.Values, seq int64) {
	t.Helper()
	v.Seq, v.SentAt, v.Token = seq, time.Now().UnixMicro(), r.PublishToken
	answer, err := new(stream.Client).Do(t.Context(), stream.Fill(s.Publish, &v))
	require.NoError(t, err)
	require.True(t, s.Publish.Accepts(answer.Status), "%d: %s", answer.Status, answer.Body)
}
