package main

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// endless is a service whose streams are ended by a DELETE, or by their clients.
type endless struct {
	streams       sync.Map // of channels, by id
	open, deletes atomic.Int64
}

func (e *endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if r.Method == http.MethodDelete {
		over, there := e.streams.LoadAndDelete(id)
		if !there || r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		e.deletes.Add(1)
		close(over.(chan struct{}))
		return
	}
	over := make(chan struct{})
	e.streams.Store(id, over)
	e.open.Add(1)
	defer e.open.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	select {
	case <-over:
	case <-r.Context().Done():
	}
}

// Each stream that is counted was open, and has ended; ids are never used twice.
func TestTheChurnClientOpensAndEndsStreams(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere 127.0.0.1 is the only address of loopback")
	}
	t.Parallel()
	for _, ask := range []bool{false, true} {
		service := &endless{}
		server := httptest.NewServer(service)
		r := churn(t.Context(), churnOptions{Address: strings.TrimPrefix(server.URL, "http://"), Prefix: "d-", Token: "t", Delete: ask, For: time.Minute, Most: 500})
		require.Empty(t, r.Errors)
		require.EqualValues(t, 500, r.Connect.Count())
		require.Eventually(t, func() bool { return service.open.Load() == 0 }, 10*time.Second, time.Millisecond)
		require.Equal(t, service.deletes.Load(), r.End.Count())
		if ask {
			require.Equal(t, r.Connect.Count(), r.End.Count())
		}
		server.Close()
	}
}

// What is refused is no result, and is not asked for again and again.
func TestTheChurnClientTellsWhatWasRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere 127.0.0.1 is the only address of loopback")
	}
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer server.Close()
	r := churn(t.Context(), churnOptions{Address: strings.TrimPrefix(server.URL, "http://"), For: time.Minute, Most: 10_000})
	require.Zero(t, r.Connect.Count())
	require.Equal(t, map[string]int{"a stream was refused: 503 Service Unavailable": 10 * churnAtATime}, r.Errors)

	server = httptest.NewServer(&endless{})
	defer server.Close()
	r = churn(t.Context(), churnOptions{Address: strings.TrimPrefix(server.URL, "http://"), Token: "wrong", Delete: true, For: time.Minute, Most: 10_000})
	require.Equal(t, map[string]int{"DELETE: it was answered with 404 Not Found": 10 * churnAtATime}, r.Errors)
}
