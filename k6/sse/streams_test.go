package sse

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A goStream is the observer of a stream that Go opens.
type goStream struct {
	Meter
	recorder
	request   sseclient.Request
	ended     chan struct{} // closed at the end of the stream
	stream    *sseclient.Stream
	lastEvent string // the data of the event after which the stream is closed
}

func newGoStream(lastEvent string, request sseclient.Request) *goStream {
	return &goStream{request: request, ended: make(chan struct{}), lastEvent: lastEvent}
}

// callbacks returns the callbacks of the recorder, with callbacks for the request and the end.
func (k *goStream) callbacks() sseclient.Callbacks {
	callbacks := testObserver{k}.Callbacks()
	callbacks.Request = func(*sseclient.Stream) sseclient.Request { return k.request }
	callbacks.Ended = func(*sseclient.Stream) { close(k.ended) }
	return callbacks
}

func (k *goStream) Event(at time.Time, e *eventstream.Event) {
	k.recorder.Event(at, e)
	if string(e.Data) == k.lastEvent {
		k.stream.Stop(sseclient.ReasonClient)
	}
}

// streams runs an iteration that opens streams in Go. The iteration ends with the streams.
func (v *vu) streams(options sseclient.Options, goStreams ...*goStream) error {
	v.t.Helper()
	return v.iterate("streams in Go", func() error {
		options.ConnectTimeout, options.ReconnectDelay = testTimeout, sseclient.DefaultReconnectDelay
		var sets []*Streams
		for _, k := range goStreams {
			set := v.m.Streams("many", "", options, k.callbacks())
			sets, k.stream = append(sets, set), set.Add(k)
		}
		go func() {
			for _, k := range goStreams {
				k.stream.Open()
			}
			for _, k := range goStreams {
				<-k.ended
			}
			for _, set := range sets {
				set.OnEnd(func() error { return nil })
			}
		}()
		return nil
	})
}

// After EndByServer an open stream has no idle timeout and does not reconnect. A stream that waits for a reconnect ends
// at once.
func TestEndByServer(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	silence := make(chan struct{})
	url := serve(t, func(p *peer) {
		served.Add(1)
		p.send(streamHead + "data: x\n\n")
		if p.req.URL.Path == "/long" {
			<-silence
		}
	})
	v := newVU(t)
	longStream := newGoStream("", sseclient.Request{URL: url + "/long"})
	lost := newGoStream("", sseclient.Request{URL: url + "/lost"})
	go func() {
		assert.Eventually(t, func() bool {
			return strings.Contains(longStream.String(), "event:x") && strings.Contains(lost.String(), "+retry")
		}, testTimeout, time.Millisecond)
		longStream.stream.EndByServer()
		lost.stream.EndByServer()
		time.AfterFunc(800*time.Millisecond, func() { close(silence) }) // longer than IdleTimeout
	}()
	require.NoError(t, v.streams(sseclient.Options{Reconnect: sseclient.ReconnectAlways, IdleTimeout: 500 * time.Millisecond}, longStream, lost))
	require.Equal(t, "connecting opened event:x closed:server", longStream.String())
	require.NotContains(t, lost.String(), "connecting opened event:x closed:server+retry connecting")
	require.EqualValues(t, 2, served.Load())
}

// A serviceObserver acts like the observer of a described service: it records the headers, chooses the last event ID,
// and makes the second request.
type serviceObserver struct {
	recorder
	last string // the last event ID
}

func (g *serviceObserver) Opened(started time.Time, r *sseclient.Response) {
	g.note(r.At, "head:%s", r.Header.Get("Resumed"))
	g.recorder.Opened(started, r)
}

func (g *serviceObserver) LastEventID() string { return g.last }

func (g *serviceObserver) Event(at time.Time, e *eventstream.Event) {
	g.recorder.Event(at, e)
	if len(e.Name) == 0 {
		g.last = string(e.Data)
	}
}

func (g *serviceObserver) FollowUp(e *eventstream.Event, f *sseclient.FollowUp) bool {
	if string(e.Name) != "hello" {
		return false
	}
	f.Send(&sseclient.SecondRequest{
		URL: "/sub?for=" + string(e.Data), Header: http.Header{"A": {"{first.id}", "b"}}, Body: "{first.id}",
		OK: func(status int) bool { return status == http.StatusTeapot },
	}, nil)
	return true
}

func TestObserverChoosesLastEventIDAndSecondRequest(t *testing.T) {
	t.Parallel()
	v, g := newVU(t), &serviceObserver{}
	answered := make(chan struct{}, 2)
	v.set("g", g)
	v.set("answered", func() { answered <- struct{}{} })
	requests := make(chan string, 2)
	n := 0
	v.set("url", v.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			requests <- fmt.Sprint(r.RequestURI, " ", r.Header.Get("A"), " ", string(body))
			w.WriteHeader(http.StatusTeapot)
			return
		}
		n++
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Resumed", r.URL.Query().Get("since"))
		_, _ = fmt.Fprintf(w, "retry: 1\nid: 99\ndata: m%d\n\nevent: hello\ndata: c%d\n\n", n, n)
		w.(http.Flusher).Flush()
		<-answered
	}))
	v.mustRun(`
		const s = new EventSource(url + "/", { ledger: g, resume: { query: "since" } });
		let n = 0;
		s.addEventListener("then", () => { if (++n === 2) s.close(); answered(); });
	`)
	require.Equal(t, "/sub?for=c1 {first.id}, b {first.id}", <-requests)
	require.Equal(t, "/sub?for=c2 {first.id}, b {first.id}", <-requests)
	require.Equal(t, "connecting head: opened event:m1 event:c1 answered:418 closed:server+retry "+
		"connecting head:m1 opened event:m2 event:c2 answered:418 closed:client", g.String())
}
