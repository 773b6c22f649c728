package faulty_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

const deadline = 10 * time.Second

func message(n int) string {
	return fmt.Sprintf("id: a:%d\r\ndata: {\"run\":\"r1\",\"seq\":%d,\"t\":8}\r\n\r\n", n, n)
}

func serve(t *testing.T, o faulty.Options) (h *fakeservice.Hub, p *faulty.Proxy) {
	t.Helper()
	h = (&fakeservice.Hub{}).Start(t)
	return h, proxy(t, h.URL, o)
}

func proxy(t *testing.T, service string, o faulty.Options) *faulty.Proxy {
	t.Helper()
	p, err := faulty.Start(service, o)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

type subscriber struct {
	mutex sync.Mutex
	text  strings.Builder
	err   error
}

func subscribe(t *testing.T, p *faulty.Proxy, topic string) *subscriber {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/sub/"+topic, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	s := &subscriber{}
	go func() {
		defer response.Body.Close()
		_, err := io.Copy(s, response.Body)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.err = cmp.Or(err, io.EOF)
	}()
	return s
}

func (s *subscriber) Write(part []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(part)
}

func (s *subscriber) received() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

func (s *subscriber) end() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.err
}

func (s *subscriber) requireText(t *testing.T, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.received()) >= len(want) }, deadline, time.Millisecond, "the stream must contain %q", want)
	require.Equal(t, want, s.received())
}

const endComment = ": last\n" // follows the last message

func TestFaultsThatEndStreams(t *testing.T) {
	for _, c := range []struct {
		kind faulty.Kind
		want error
		rest string
	}{
		{faulty.Reset, syscall.ECONNRESET, ""}, {faulty.Close, io.ErrUnexpectedEOF, ""}, {faulty.End, io.EOF, ""},
		{faulty.ResetAfter, syscall.ECONNRESET, message(2)}, {faulty.Truncate, io.ErrUnexpectedEOF, message(2)[:len(message(2))/2]},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			h, p := serve(t, faulty.Options{Faults: []faulty.Fault{{Kind: c.kind, Message: 2, Once: true, Wait: 50 * time.Millisecond}}})
			s := subscribe(t, p, "a-topic-1")
			h.Send("a-topic-1", message(1))
			s.requireText(t, message(1))
			h.Send("a-topic-1", message(2)+message(3))
			require.Eventually(t, func() bool { return s.end() != nil }, deadline, time.Millisecond, "the stream must end")
			require.ErrorIs(t, s.end(), c.want)
			require.Equal(t, message(1)+c.rest, s.received())
			require.Len(t, p.Actions(), 1)
			require.Equal(t, int64(2), p.Actions()[0].Number)
			// The fault does not affect the stream of a client that reconnects.
			s = subscribe(t, p, "a-topic-1")
			h.Send("a-topic-1", message(4)+message(5))
			s.requireText(t, message(4)+message(5))
		})
	}
}

// A fault with Once affects a later stream if the message that it selects first completes a swap.
func TestSwapPostponesAnotherFault(t *testing.T) {
	h, p := serve(t, faulty.Options{Faults: []faulty.Fault{
		{Kind: faulty.Swap, Message: 1, Once: true}, {Kind: faulty.Lose, Message: 2, Once: true},
	}})
	s := subscribe(t, p, "a-topic-1")
	h.Send("a-topic-1", message(1)+message(2))
	s.requireText(t, message(2)+message(1))
	s = subscribe(t, p, "a-topic-1")
	h.Send("a-topic-1", message(3)+message(4)+message(5))
	s.requireText(t, message(3)+message(5))
}

// A fault with a topic affects only streams of that topic, even if only messages name the topic. A fault with a number
// affects that message on any stream.
func TestFaultSelection(t *testing.T) {
	h, p := serve(t, faulty.Options{Marker: "r1", Faults: []faulty.Fault{
		{Kind: faulty.Lose, Topic: "soak-topic-1"},
		{Kind: faulty.Lose, Topic: "soak-topic-2", Number: 9},
		{Kind: faulty.Lose, Topic: "soak-topic-4"},
	}})
	otherTopic, topic := subscribe(t, p, "soak-topic-0"), subscribe(t, p, "soak-topic-1")
	bothStreams := []*subscriber{subscribe(t, p, "soak-topic-2"), subscribe(t, p, "soak-topic-2")}
	topicInData := subscribe(t, p, "any")
	for _, topic := range []string{"soak-topic-0", "soak-topic-1"} {
		h.Send(topic, "data: no message\n\n"+message(1)+endComment)
	}
	const record = `data: {"record":{"topic":"soak-topic-4","run":"r1","seq":5}}` + "\n\n"
	h.Send("soak-topic-2", message(8)+message(9)+message(10)+endComment)
	h.Send("any", record+record+endComment)
	otherTopic.requireText(t, "data: no message\n\n"+message(1)+endComment)
	topic.requireText(t, "data: no message\n\n"+endComment)
	for _, s := range bothStreams {
		s.requireText(t, message(8)+message(10)+endComment)
	}
	topicInData.requireText(t, record+endComment)
	require.Len(t, p.Actions(), 4)
}

// If the service ends a stream, the proxy forwards everything that it has received, and ends the stream in the same
// way.
func TestStreamEnd(t *testing.T) {
	h, p := serve(t, faulty.Options{Faults: []faulty.Fault{{Kind: faulty.Swap}}})
	s := subscribe(t, p, "a")
	h.Send("a", message(1)+"data: half")
	h.Send("a", "")
	require.Eventually(t, func() bool { return s.end() != nil }, deadline, time.Millisecond, "the stream must end")
	require.ErrorIs(t, s.end(), io.EOF)
	require.Equal(t, message(1)+"data: half", s.received())
	require.Empty(t, p.Actions(), "an incomplete swap must not be recorded")

	s = subscribe(t, p, "b")
	h.Stop()
	require.Eventually(t, func() bool { return s.end() != nil }, deadline, time.Millisecond, "the stream must end")
	require.ErrorIs(t, s.end(), io.ErrUnexpectedEOF)
}

// publish returns the status of the response to a publish request, or 0 if there was no response.
func publish(t *testing.T, p *faulty.Proxy, path, body string) int {
	t.Helper()
	response, err := http.Post(p.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "unexpected error: %v", err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestPublisherFaults(t *testing.T) {
	for _, c := range []struct {
		name      string
		fault     faulty.PublishFault
		want      []int
		delivered int
	}{
		{"none", faulty.PublishFault{}, []int{201, 201, 201, 201}, 4},
		{"401", faulty.PublishFault{Kind: faulty.Refuse, Status: 401}, []int{401, 401, 401, 401}, 0},
		{"two requests answered with 503", faulty.PublishFault{Kind: faulty.Refuse, Status: 503, From: 2, Count: 2}, []int{201, 503, 503, 201}, 2},
		{"connection closed before the service", faulty.PublishFault{Kind: faulty.CutBefore, From: 3}, []int{201, 201, 0, 0}, 2},
		{"connection closed after the service", faulty.PublishFault{Kind: faulty.CutAfter, From: 2, Count: 1}, []int{201, 0, 201, 201}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			var delivered atomic.Int32
			h := &fakeservice.Hub{OK: http.StatusCreated, Lose: func(string, string) bool { delivered.Add(1); return true }}
			o := faulty.Options{}
			if c.fault.Kind != 0 {
				o.Publish = []faulty.PublishFault{c.fault}
			}
			p := proxy(t, h.Start(t).URL, o)
			require.Equal(t, http.StatusNotFound, publish(t, p, "/join", `{"client":"x"}`), "a request without a message must not be affected")
			var numbers []int64
			for i, want := range c.want {
				require.Equal(t, want, publish(t, p, "/pub/soak-topic-1", fmt.Sprintf(`{"run":"r1","seq":%d}`, i+1)), "request %d", i+1)
				if want != 201 {
					numbers = append(numbers, int64(i+1))
				}
			}
			require.EqualValues(t, c.delivered, delivered.Load())
			var actionNumbers []int64
			for _, a := range p.Actions() {
				require.Equal(t, c.fault.Kind, a.Publish)
				require.Equal(t, "soak-topic-1", a.Topic)
				actionNumbers = append(actionNumbers, a.Number)
			}
			require.Equal(t, numbers, actionNumbers)
		})
	}
}

// Publishers of Mercure send the topic and the data in a form.
func TestFaultOfAPublishedForm(t *testing.T) {
	_, p := serve(t, faulty.Options{Publish: []faulty.PublishFault{{Kind: faulty.Refuse, Status: 401}}})
	require.Equal(t, 401, publish(t, p, "/pub/x", "topic=soak-topic-7&data=%7B%22run%22:%22r1%22,%22seq%22:12%7D"))
	require.Len(t, p.Actions(), 1)
	require.Equal(t, "soak-topic-7", p.Actions()[0].Topic)
	require.Equal(t, int64(12), p.Actions()[0].Number)
}

func TestUnreachableService(t *testing.T) {
	h, p := serve(t, faulty.Options{})
	h.Stop()
	require.Zero(t, publish(t, p, "/pub/a", `{"run":"r1","seq":1}`))
}
