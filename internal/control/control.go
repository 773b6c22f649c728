// Package control implements the reference server of the control group. Each stream of the reference server sends one
// event per second. If messages of the service under test are late while these events are also late, the service may
// not be the cause. The package contains the server, and the Account of the events that a client received.
package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Interval is the time between two events of a stream.
const Interval = time.Second

// mark is the prefix of the data of an event. It distinguishes a reference from a service that numbers its events.
const mark = "late_us="

// maxStreams limits the open streams of a reference, because any client can open one.
const maxStreams = 10_000

// Serve serves streams until ctx ends. A stream sends an event when it opens and then one per Interval, without drift.
// The id of an event is its number on the stream, from 1. The data has the delay of this process in microseconds, which
// distinguishes a stalled reference from a stalled client.
func Serve(ctx context.Context, listener net.Listener) error {
	s := &http.Server{
		Handler: limitStreams(maxStreams, http.HandlerFunc(serveStream)), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 8 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the reference of the control group: %w", err)
	}
	return nil
}

// limitStreams returns a handler that responds with status 503 while handler serves the maximum number of streams.
func limitStreams(limit int, handler http.Handler) http.Handler {
	open := make(chan struct{}, limit)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case open <- struct{}{}:
			defer func() { <-open }()
			handler.ServeHTTP(w, r)
		default:
			http.Error(w, "this reference has reached its maximum number of streams", http.StatusServiceUnavailable)
		}
	})
}

func serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	controller := http.NewResponseController(w)
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var event []byte
	for number := uint64(1); ; number++ {
		due := start.Add(time.Duration(number-1) * Interval)
		timer.Reset(time.Until(due))
		select {
		case <-r.Context().Done():
			return
		case <-timer.C:
		}
		event = strconv.AppendUint(append(event[:0], "id: "...), number, 10)
		event = strconv.AppendInt(append(event, "\ndata: "+mark...), max(time.Since(due).Microseconds(), 0), 10)
		if _, err := w.Write(append(event, "\n\n"...)); err != nil || controller.Flush() != nil {
			return
		}
	}
}
