package faulty

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const soon = 10 * time.Second

// feed is a service: what is sent to a topic comes on all its streams, in pieces of some bytes.
type feed struct {
	server *httptest.Server

	mutex     sync.Mutex
	streams   map[string][]chan string
	published []string
}

func newFeed(t *testing.T) *feed {
	t.Helper()
	f := &feed{streams: map[string][]chan string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		lines := make(chan string, 100)
		f.mutex.Lock()
		f.streams[r.PathValue("topic")] = append(f.streams[r.PathValue("topic")], lines)
		f.mutex.Unlock()
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case text, more := <-lines:
				if !more {
					return
				}
				for len(text) > 0 {
					n := min(7, len(text))
					_, _ = io.WriteString(w, text[:n])
					_ = http.NewResponseController(w).Flush()
					text = text[n:]
				}
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /pub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.published = append(f.published, string(body))
		w.WriteHeader(http.StatusCreated)
	})
	mux.HandleFunc("POST /join", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	f.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

// send sends to the streams of a topic.
func (f *feed) send(topic, text string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, lines := range f.streams[topic] {
		lines <- text
	}
}

func (f *feed) close(topic string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, lines := range f.streams[topic] {
		close(lines)
	}
	f.streams[topic] = nil
}

func (f *feed) came() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.published)
}

func message(n int) string {
	return fmt.Sprintf("id: a:%d\r\ndata: {\"run\":\"r1\",\"seq\":%d,\"t\":8}\r\n\r\n", n, n)
}

func proxy(t *testing.T, f *feed, o Options) *Proxy {
	t.Helper()
	p, err := Start(f.server.URL, o)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

// subscriber is a stream through the proxy.
type subscriber struct {
	mutex sync.Mutex
	text  string
	ended error
}

func subscribe(t *testing.T, p *Proxy, topic string) *subscriber {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/sub/"+topic, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	s := &subscriber{}
	go func() {
		defer response.Body.Close()
		in := bufio.NewReader(response.Body)
		for {
			b, err := in.ReadByte()
			s.mutex.Lock()
			if err != nil {
				s.ended = err
				s.mutex.Unlock()
				return
			}
			s.text += string(b)
			s.mutex.Unlock()
		}
	}()
	return s
}

func (s *subscriber) got() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text
}

func (s *subscriber) end() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ended
}

func (s *subscriber) gets(t *testing.T, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.got()) >= len(want) }, soon, time.Millisecond, "not there: %q", want)
	require.Equal(t, want, s.got())
}

const last = ": last\n" // after it nothing is on its way

func TestStreamFaults(t *testing.T) {
	one, two, three, four := message(1), message(2), message(3), message(4)
	const beat = ":\n"
	for _, c := range []struct {
		kind Kind
		want string
		next int64
	}{
		{Lose, one + beat + three + four, 0},
		{Repeat, one + two + two + beat + three + four, 0},
		{Swap, one + beat + three + two + four, 3},
		{NoNumber, one + strings.Replace(two, `"seq":2`, `"seq":"x2"`, 1) + beat + three + four, 0},
		{OtherDigit, one + strings.Replace(two, `"seq":2`, `"seq":4`, 1) + beat + three + four, 0},
		{OtherMarker, one + strings.Replace(two, `"r1"`, `"rx"`, 1) + beat + three + four, 0},
		{OtherTime, one + strings.Replace(two, `"t":8`, `"t":0`, 1) + beat + three + four, 0},
		{Garble, one + strings.Replace(two, `"seq":2`, `"seq":x2`, 1) + beat + three + four, 0},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			f := newFeed(t)
			p := proxy(t, f, Options{Faults: []Fault{{Kind: c.kind, Stream: 2, Message: 2}}})
			first, second, third := subscribe(t, p, "soak-topic-3"), subscribe(t, p, "soak-topic-3"), subscribe(t, p, "soak-topic-3")
			for _, text := range []string{one, two, beat, three, four, last} {
				f.send("soak-topic-3", text)
			}
			second.gets(t, c.want+last)
			whole := one + two + beat + three + four + last
			first.gets(t, whole)
			third.gets(t, whole)
			deeds := p.Deeds()
			require.Len(t, deeds, 1)
			deeds[0].At = time.Time{}
			require.Equal(t, Deed{Fault: c.kind, Topic: "soak-topic-3", Number: 2, Next: c.next, Stream: 2, Path: "/sub/soak-topic-3", Message: 2}, deeds[0])
			require.Equal(t, 3, p.Streams())
		})
	}
}

func TestCuts(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		want error
		rest string
	}{
		{Reset, syscall.ECONNRESET, ""}, {Close, io.ErrUnexpectedEOF, ""}, {End, io.EOF, ""},
		{ResetAfter, syscall.ECONNRESET, message(2)}, {Truncate, io.ErrUnexpectedEOF, message(2)[:len(message(2))/2]},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			f := newFeed(t)
			p := proxy(t, f, Options{Faults: []Fault{{Kind: c.kind, Message: 2, Once: true, Wait: 50 * time.Millisecond}}})
			s := subscribe(t, p, "a-topic-1")
			f.send("a-topic-1", message(1))
			s.gets(t, message(1))
			f.send("a-topic-1", message(2)+message(3))
			require.Eventually(t, func() bool { return s.end() != nil }, soon, time.Millisecond)
			require.ErrorIs(t, s.end(), c.want)
			require.Equal(t, message(1)+c.rest, s.got())
			require.Len(t, p.Deeds(), 1)
			require.Equal(t, int64(2), p.Deeds()[0].Number)
			// It connects again, as another stream: the fault was for one.
			s = subscribe(t, p, "a-topic-1")
			f.send("a-topic-1", message(4)+message(5))
			s.gets(t, message(4)+message(5))
		})
	}
}

// A client that a fault does not name receives everything, however the proxy passes it on.
func TestVanishAndPause(t *testing.T) {
	f := newFeed(t)
	p := proxy(t, f, Options{
		Faults:     []Fault{{Kind: Vanish, Client: "a", Message: 2}, {Kind: Pause, Client: "b", Message: 2, Wait: 200 * time.Millisecond}},
		ByteByByte: true, Merged: true,
	})
	vanishes, pauses, other := subscribe(t, p, "all?id=a"), subscribe(t, p, "all?id=b"), subscribe(t, p, "all?id=c")
	f.send("all", message(1))
	pauses.gets(t, message(1))
	began := time.Now()
	f.send("all", message(2)+message(3))
	other.gets(t, message(1)+message(2)+message(3))
	pauses.gets(t, message(1)+message(2)+message(3))
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
	vanishes.gets(t, message(1)+message(2))
	require.NoError(t, vanishes.end())
}

// A fault of a topic concerns its streams alone, also where the topic stands in the messages only; a number names a
// message wherever it comes.
func TestFaultSelection(t *testing.T) {
	f := newFeed(t)
	p := proxy(t, f, Options{Marker: "r1", Faults: []Fault{
		{Kind: Lose, Topic: "soak-topic-1", Stream: 2},
		{Kind: Lose, Topic: "soak-topic-2", Number: 9},
		{Kind: Lose, Topic: "soak-topic-4"},
	}})
	other := subscribe(t, p, "soak-topic-0")
	first, second := subscribe(t, p, "soak-topic-1"), subscribe(t, p, "soak-topic-1")
	named := []*subscriber{subscribe(t, p, "soak-topic-2"), subscribe(t, p, "soak-topic-2")}
	inside := subscribe(t, p, "any")
	for _, topic := range []string{"soak-topic-0", "soak-topic-1"} {
		f.send(topic, "data: no message\n\n"+message(1)+last)
	}
	const record = `data: {"record":{"topic":"soak-topic-4","run":"r1","seq":5}}` + "\n\n"
	f.send("soak-topic-2", message(8)+message(9)+message(10)+last)
	f.send("any", record+record+last)
	other.gets(t, "data: no message\n\n"+message(1)+last)
	first.gets(t, "data: no message\n\n"+message(1)+last)
	second.gets(t, "data: no message\n\n"+last)
	for _, s := range named {
		s.gets(t, message(8)+message(10)+last)
	}
	inside.gets(t, record+last)
	require.Len(t, p.Deeds(), 4)
}

// A stream that the service ends, ends the same way behind the proxy, with all that was on its way.
func TestStreamEnd(t *testing.T) {
	f := newFeed(t)
	p := proxy(t, f, Options{Faults: []Fault{{Kind: Swap}}})
	s := subscribe(t, p, "a")
	f.send("a", message(1)+"data: half")
	f.close("a")
	require.Eventually(t, func() bool { return s.end() != nil }, soon, time.Millisecond)
	require.ErrorIs(t, s.end(), io.EOF)
	require.Equal(t, message(1)+"data: half", s.got())
	require.Empty(t, p.Deeds(), "no other message came")

	s = subscribe(t, p, "b")
	f.server.CloseClientConnections()
	require.Eventually(t, func() bool { return s.end() != nil }, soon, time.Millisecond)
	require.ErrorIs(t, s.end(), io.ErrUnexpectedEOF)
}

// publish is the status of a request that publishes, 0 where none came.
func publish(t *testing.T, p *Proxy, path, body string) int {
	t.Helper()
	response, err := http.Post(p.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestPublisherFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault PublishFault
		want  []int
		came  int
	}{
		{"none", PublishFault{}, []int{201, 201, 201, 201}, 4},
		{"401", PublishFault{Kind: Refuse, Status: 401}, []int{401, 401, 401, 401}, 0},
		{"503, then not any more", PublishFault{Kind: Refuse, Status: 503, From: 2, Count: 2}, []int{201, 503, 503, 201}, 2},
		{"cut off", PublishFault{Kind: CutBefore, From: 3}, []int{201, 201, 0, 0}, 2},
		{"no answer", PublishFault{Kind: CutAfter, From: 2, Count: 1}, []int{201, 0, 201, 201}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFeed(t)
			o := Options{}
			if c.fault.Kind != 0 {
				o.Publish = []PublishFault{c.fault}
			}
			p := proxy(t, f, o)
			require.Equal(t, http.StatusNoContent, publish(t, p, "/join", `{"client":"x"}`), "it publishes nothing")
			var numbers []int64
			for i, want := range c.want {
				require.Equal(t, want, publish(t, p, "/pub/soak-topic-1", fmt.Sprintf(`{"run":"r1","seq":%d}`, i+1)), "request %d", i+1)
				if want != 201 {
					numbers = append(numbers, int64(i+1))
				}
			}
			require.Equal(t, c.came, f.came())
			require.Equal(t, len(c.want), p.Published())
			var did []int64
			for _, d := range p.Deeds() {
				require.Equal(t, c.fault.Kind, d.Publish)
				require.Equal(t, "soak-topic-1", d.Topic)
				did = append(did, d.Number)
			}
			require.Equal(t, numbers, did)
		})
	}
}

// As Mercure has it: topic and data in a form.
func TestPublisherSendsForms(t *testing.T) {
	f := newFeed(t)
	p := proxy(t, f, Options{Publish: []PublishFault{{Kind: Refuse, Status: 401}}})
	require.Equal(t, 401, publish(t, p, "/pub/x", "topic=soak-topic-7&data=%7B%22run%22:%22r1%22,%22seq%22:12%7D"))
	require.Len(t, p.Deeds(), 1)
	require.Equal(t, "soak-topic-7", p.Deeds()[0].Topic)
	require.Equal(t, int64(12), p.Deeds()[0].Number)
}

func TestUnreachableService(t *testing.T) {
	f := newFeed(t)
	p := proxy(t, f, Options{})
	f.server.Close()
	require.Zero(t, publish(t, p, "/pub/a", `{"run":"r1","seq":1}`))
}
