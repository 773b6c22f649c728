package sse

import (
	"fmt"
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

// A keeper is a recorder with its Stream.
type keeper struct {
	Meter
	recorder
	request   sseclient.Request
	ended     chan struct{} // closed at the end of the stream
	stream    *sseclient.Stream
	lastEvent string // the data of the event after which the stream is closed
}

func newKeeper(lastEvent string, request sseclient.Request) *keeper {
	return &keeper{request: request, ended: make(chan struct{}), lastEvent: lastEvent}
}

// callbacks returns the callbacks of the recorder, with the request and the end.
func (k *keeper) callbacks() sseclient.Callbacks {
	on := testObserver{k}.Callbacks()
	on.Request = func(*sseclient.Stream) sseclient.Request { return k.request }
	on.Ended = func(*sseclient.Stream) { close(k.ended) }
	return on
}

func (k *keeper) Event(at time.Time, e *eventstream.Event) {
	k.recorder.Event(at, e)
	if string(e.Data) == k.lastEvent {
		k.stream.Stop(sseclient.ReasonClient)
	}
}

// streams runs an iteration that opens the streams of keepers. The iteration ends with the streams.
func (v *vu) streams(options sseclient.Options, keepers ...*keeper) error {
	v.t.Helper()
	return v.iterate("streams in Go", func() error {
		options.ConnectTimeout, options.ReconnectDelay = patience, sseclient.DefaultReconnectDelay
		var sets []*Streams
		for _, k := range keepers {
			set := v.m.Streams("many", "", options, k.callbacks())
			sets, k.stream = append(sets, set), set.Add(k)
		}
		go func() {
			for _, k := range keepers {
				k.stream.Open()
			}
			for _, k := range keepers {
				<-k.ended
			}
			for _, set := range sets {
				set.OnEnd(func() error { return nil })
			}
		}()
		return nil
	})
}

// The iteration ends with the last stream.
func TestStreamsInGoHaveObserversAndMetrics(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		url := v.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: %s %s\n\ndata: end\n\n", r.URL.Path, r.Header.Get("A"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		var keepers []*keeper
		for n := range 20 {
			keepers = append(keepers, newKeeper("end", sseclient.Request{URL: fmt.Sprintf("%s/%d", url, n), Header: http.Header{"A": {"b"}}}))
		}
		require.NoError(t, v.streams(sseclient.Options{IdleTimeout: patience}, keepers...))
		for n, k := range keepers {
			require.Equal(t, fmt.Sprintf("connecting opened event:/%d b event:end closed:client", n), k.String())
		}
		samples := v.drainSamples()
		for name, want := range map[string]float64{"sse_connection_opened": 20, "sse_event": 40, "sse_connection_closed": 20} {
			sum, _ := v.sum(samples, name, "name", "many", "url", "many", "method", "GET", "status", "200")
			require.Equal(t, want, sum, name)
		}
	})
}

// After EndByServer an open stream has no idle timeout and does not reconnect. A stream that waits for a reconnect ends at
// once.
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
	longStream := newKeeper("", sseclient.Request{URL: url + "/long"})
	lost := newKeeper("", sseclient.Request{URL: url + "/lost"})
	go func() {
		assert.Eventually(t, func() bool {
			return strings.Contains(longStream.String(), "event:x") && strings.Contains(lost.String(), "+retry")
		}, patience, time.Millisecond)
		longStream.stream.EndByServer()
		lost.stream.EndByServer()
		time.AfterFunc(3*time.Second, func() { close(silence) }) // longer than IdleTimeout
	}()
	require.NoError(t, v.streams(sseclient.Options{Reconnect: sseclient.ReconnectAlways, IdleTimeout: 2 * time.Second}, longStream, lost))
	require.Equal(t, "connecting opened event:x closed:server", longStream.String())
	require.NotContains(t, lost.String(), "connecting opened event:x closed:server+retry connecting")
	require.EqualValues(t, 2, served.Load())
}
