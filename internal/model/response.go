package model

import (
	"context"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A response sends one answer. Its methods return false when nothing more can or must be sent.
type response struct {
	server  *Server
	api     api
	a       *answer
	w       http.ResponseWriter
	ctx     context.Context // ends when the client leaves
	b       []byte          // not yet written
	entry   entry
	started time.Time
	timer   *time.Timer
}

// send sends the answer and records its outcome.
func (r *response) send() {
	header := r.w.Header()
	header.Set("X-Request-Id", r.a.ID)
	status := r.a.Fault.Kind.status(r.a.stream)
	switch {
	case status != http.StatusOK:
		if status == http.StatusTooManyRequests {
			header.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.server.config.RetryAfter.Seconds()))))
		}
		r.entry.outcome = Refused
		refuse(r.w, r.api, status, failureMessage)
	case !r.a.stream:
		r.sendAtOnce()
	default:
		header.Set("Content-Type", "text/event-stream; charset=utf-8")
		header.Set("Cache-Control", "no-cache")
		r.w.WriteHeader(http.StatusOK)
		r.sendStream()
	}
}

// sendStream sends the answer as events.
func (r *response) sendStream() {
	kind := r.a.Fault.Kind
	if kind == Empty {
		r.entry.outcome = Truncated
		_ = r.flush()
		return
	}
	r.b = r.api.head(r.b, r.a)
	if !r.flush() || !r.sendChunks() {
		return
	}
	if kind.last() {
		r.end()
		return
	}
	r.b = r.api.tail(r.b, r.a)
	if kind != NoTerminal {
		r.b = r.api.terminal(r.b, r.a)
	}
	if !r.flush() {
		return
	}
	r.entry.outcome = Complete
	switch kind {
	case NoTerminal:
		r.entry.outcome = Truncated
	case Linger:
		r.stay()
	case After:
		r.b = r.api.chunk(r.b, r.a, r.a.Chunks)
		r.flush()
	case Twice:
		r.b = r.api.terminal(r.b, r.a)
		r.flush()
	}
}

// sendChunks sends the chunks, each at its time.
func (r *response) sendChunks() bool {
	a := r.a
	last := a.Chunks
	if a.Fault.Kind.last() {
		last = a.Fault.K
	}
	for i := 1; i <= last; i++ {
		if !r.wait(r.due(i)) {
			return false
		}
		numbers, count := a.Fault.numbersAt(i, a.Chunks)
		for _, k := range numbers[:count] {
			r.b = r.api.chunk(r.b, a, k)
		}
		if a.Fault.Kind == Burst && i < last {
			continue
		}
		if a.Fault.Kind == Burst {
			count = last
		}
		if count > 0 && !r.flush() {
			return false
		}
		r.count(count)
	}
	return !a.Fault.Kind.last() || r.wait(r.due(last+1))
}

// due returns the time of chunk i. The schedule does not drift.
func (r *response) due(i int) time.Time {
	return r.started.Add(r.a.TTFT + time.Duration(i-1)*r.a.Delay)
}

// count records chunks that were written.
func (r *response) count(chunks int) {
	if chunks == 0 {
		return
	}
	r.entry.last = time.Now().UnixMicro()
	if r.entry.first == 0 {
		r.entry.first = r.entry.last
	}
	r.entry.sent += int32(chunks) // #nosec G115 -- at most MaxChunks
	r.server.metrics.chunks.Add(float64(chunks))
}

// end closes a response that has no terminal event.
func (r *response) end() {
	switch r.a.Fault.Kind {
	case Error:
		r.b = r.api.failure(r.b, r.a)
		if r.flush() {
			r.entry.outcome = ErrorEvent
		}
	case Stall:
		r.entry.outcome = Left
		if !r.stay() {
			r.entry.outcome = Interrupted
		}
	default:
		r.entry.outcome = Truncated
		r.disconnect()
	}
}

// disconnect closes the connection if the fault requires it.
func (r *response) disconnect() {
	kind := r.a.Fault.Kind
	if kind != Cut && kind != Reset {
		return
	}
	conn, _, err := http.NewResponseController(r.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && kind == Reset {
		r.entry.outcome = ResetByUs
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// sendAtOnce sends the answer as one JSON object, after the time that the stream would take.
func (r *response) sendAtOnce() {
	if !r.wait(r.due(r.a.Chunks)) {
		return
	}
	kind := r.a.Fault.Kind
	r.b = r.api.appendComplete(r.b, r.a)
	if kind.last() {
		r.b = r.b[:len(r.b)/2]
	}
	if kind == Empty {
		r.b = r.b[:0]
	}
	r.w.Header().Set("Content-Type", "application/json")
	if !r.flush() {
		return
	}
	if kind.last() {
		r.end()
		return
	}
	r.count(r.a.Chunks)
	r.entry.outcome = Complete
	if kind == Linger {
		r.stay()
	}
}

// wait blocks until a time. It returns false if the client left before.
func (r *response) wait(until time.Time) bool {
	left := time.Until(until)
	if left > 0 {
		if r.timer == nil {
			r.timer = time.NewTimer(left)
		} else {
			r.timer.Reset(left)
		}
		select {
		case <-r.timer.C:
		case <-r.ctx.Done():
		}
		left = time.Until(until)
	}
	if r.ctx.Err() != nil {
		r.leave()
		return false
	}
	r.entry.late = max(r.entry.late, int32(min(-left/time.Microsecond, math.MaxInt32))) // #nosec G115 -- bounded
	return true
}

// stay keeps the connection open. It reports whether the client left before the server stopped.
func (r *response) stay() bool {
	select {
	case <-r.ctx.Done():
		r.entry.left = time.Now().UnixMicro()
		return true
	case <-r.server.stopping:
		return false
	}
}

// leave records that the client left, or that the server closed the connection because it stops.
func (r *response) leave() {
	select {
	case <-r.server.stopping:
		r.entry.outcome = Interrupted
	default:
		r.entry.outcome = Left
		r.entry.left = time.Now().UnixMicro()
	}
}

// flush writes what is in the buffer to the connection.
func (r *response) flush() bool {
	_, err := r.w.Write(r.b)
	r.b = r.b[:0]
	if err == nil {
		err = http.NewResponseController(r.w).Flush()
	}
	if err != nil {
		r.leave()
	}
	return err == nil
}
