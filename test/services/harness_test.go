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

// deadline is the maximum time of an operation on a busy machine.
const deadline = 20 * time.Second

// TestMain runs more tests in parallel than there are cores, because the tests mostly wait.
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
func description(t testing.TB, name string) *service.Service {
	t.Helper()
	file := name
	if !strings.Contains(file, "/") {
		file = filepath.Join("..", "..", "load-tests", "services", name+".js")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	s, err := service.Parse(module.Evaluate(t, string(text)))
	require.NoError(t, err, name)
	return s
}

type event struct {
	service.Reading
	name string
	id   string // last event ID of the stream after the event
}

type subscriber struct {
	*stream.Stream

	mutex  sync.Mutex
	events []event
	err    error // nil: the stream is open
}

// subscribe opens a stream as the description of the service defines, including the second request. If lastID is not
// "", the stream resumes after the event with this id.
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
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(out.eventsOfKind(service.Other), func(e event) bool { return e.name == "stream-open" })
		}, deadline, time.Millisecond, "the subscription must complete")
	}
	return out
}

// read collects the events of the stream until its end. It closes open when the second request is accepted.
func (s *subscriber) read(description *service.Service, v service.Values, open chan struct{}) {
	reader := description.Reader(v.Run)
	for {
		part, err := s.Next()
		if err != nil {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.err = err
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
		s.events = append(s.events, event{reading, string(part.Event), s.LastEventID()})
		s.mutex.Unlock()
	}
}

func (s *subscriber) eventsOfKind(kind service.Kind) (out []event) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, e := range s.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// awaitNumbers waits until len(want) messages have arrived, and requires that they have these numbers.
func (s *subscriber) awaitNumbers(t *testing.T, want ...int64) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.eventsOfKind(service.Delivery)) == len(want) }, deadline, 5*time.Millisecond,
		"the messages %v must arrive", want)
	for i, e := range s.eventsOfKind(service.Delivery) {
		require.NoError(t, e.Err)
		require.Equal(t, want[i], e.Seq)
	}
}

// end returns the error that ended the stream, or nil if the stream is open.
func (s *subscriber) end() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.err
}

// publish publishes a message, and requires that the service acknowledges the message.
func publish(t *testing.T, r *Instance, s *service.Service, v service.Values, seq int64) {
	t.Helper()
	v.Seq, v.SentAt, v.Token = seq, time.Now().UnixMicro(), r.command.token
	answer, err := new(stream.Client).Do(t.Context(), stream.Fill(s.Publish, &v))
	require.NoError(t, err)
	require.True(t, s.Publish.Accepts(answer.Status), "%d: %s", answer.Status, answer.Body)
}
