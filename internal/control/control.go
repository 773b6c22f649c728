// Package control is the reference target of the control group: streams that do nothing but send one event per second.
// What is late on them too is not the fault of the service that is soaked. Both sides are here: the server, and what a
// reader makes of the events of one stream.
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

// mark is the prefix of the data of an event. Without it the numbered events of another service could pass for those
// of a reference, and their rhythm for delays.
const mark = "late_us="

// maxStreams bounds what a stranger can make a reference hold.
const maxStreams = 10_000

// Serve sends events to each client until ctx ends: one when a stream opens, and one every Every after that. The id
// of an event is its number on its stream, from 1. Its data has the delay of this process in microseconds, which
// distinguishes a stalled reference from a stalled reader. The schedule does not drift.
func Serve(ctx context.Context, listener net.Listener) error {
	s := &http.Server{
		Handler: limitStreams(maxStreams, http.HandlerFunc(stream)), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 8 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer ended()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the reference of the control group: %w", err)
	}
	return nil
}

func limitStreams(limit int, h http.Handler) http.Handler {
	places := make(chan struct{}, limit)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			h.ServeHTTP(w, r)
		default:
			http.Error(w, "this reference holds no more streams", http.StatusServiceUnavailable)
		}
	})
}

func stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w)
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var event []byte
	for n := uint64(1); ; n++ {
		due := start.Add(time.Duration(n-1) * Interval)
		timer.Reset(time.Until(due))
		select {
		case <-r.Context().Done():
			return
		case <-timer.C:
		}
		event = strconv.AppendUint(append(event[:0], "id: "...), n, 10)
		event = strconv.AppendInt(append(event, "\ndata: "+mark...), max(time.Since(due).Microseconds(), 0), 10)
		if _, err := w.Write(append(event, "\n\n"...)); err != nil || flush.Flush() != nil {
			return
		}
	}
}
