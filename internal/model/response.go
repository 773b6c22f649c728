package model

import (
	"context"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A response sends one answer. sendChunks, wait and flush return false after the client left or the server stopped.
type response struct {
	server  *Server
	api     *api
	a       *answer
	w       http.ResponseWriter
	ctx     context.Context // ends when the connection closes
	b       []byte          // data to write at the next flush
	record  Record
	started time.Time
}

func (r *response) send() {
	header := r.w.Header()
	header.Set("X-Request-Id", r.a.ID)
	status := r.a.Fault.Kind.status(r.a.stream)
	switch {
	case status != http.StatusOK:
		if status == http.StatusTooManyRequests {
			header.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.server.config.RetryAfter.Seconds()))))
		}
		r.record.Outcome = Refused
		refuse(r.w, r.api, status, failureMessage)
	case !r.a.stream:
		r.sendObject()
	default:
		header.Set("Content-Type", "text/event-stream; charset=utf-8")
		header.Set("Cache-Control", "no-cache")
		r.w.WriteHeader(http.StatusOK)
		r.sendStream()
	}
}

// add adds a template, with the text of chunk k, to the data of the next flush.
func (r *response) add(template string, k int) { r.b = r.a.fill(r.b, template, k) }

func (r *response) sendStream() {
	kind := r.a.Fault.Kind
	if kind == Empty {
		r.record.Outcome = Truncated
		_ = r.flush()
		return
	}
	r.add(r.api.head, 0)
	if !r.flush() || !r.sendChunks() {
		return
	}
	if kind.endsAtChunk() {
		r.end()
		return
	}
	end := r.a.ending(r.api)
	r.add(end.tail, 0)
	if r.a.usage {
		r.add(r.api.usage, 0)
	}
	if kind != NoTerminal {
		r.add(end.terminal, 0)
	}
	if !r.flush() {
		return
	}
	r.record.Outcome = Complete
	switch kind {
	case NoTerminal:
		r.record.Outcome = Truncated
	case Linger:
		r.waitForClient()
	case ChunkAfterEnd:
		r.add(r.api.chunk, r.a.Chunks)
		r.flush()
	case DoubleTerminal:
		r.add(end.terminal, 0)
		r.flush()
	}
}

// sendChunks sends each chunk at its time, or all chunks at the time of the last one (Burst). If the fault ends the
// answer at a chunk, sendChunks stops there and waits for the time of the next chunk.
func (r *response) sendChunks() bool {
	a := r.a
	last := a.Chunks
	if a.Fault.Kind.endsAtChunk() {
		last = a.Fault.K
	}
	for i := 1; i <= last; i++ {
		if !r.wait(r.due(i)) {
			return false
		}
		numbers, count := a.Fault.numbersAt(i, a.Chunks)
		for _, k := range numbers[:count] {
			r.add(r.api.chunk, k)
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
	return !a.Fault.Kind.endsAtChunk() || r.wait(r.due(last+1))
}

// due returns the time of chunk i, which does not depend on the lateness of earlier chunks.
func (r *response) due(i int) time.Time {
	return r.started.Add(r.a.TTFT + time.Duration(i-1)*r.a.Delay)
}

func (r *response) count(chunks int) {
	if chunks == 0 {
		return
	}
	r.record.Last = time.Now().UnixMicro()
	if r.record.First == 0 {
		r.record.First = r.record.Last
	}
	r.record.Sent += int32(chunks) // #nosec G115 -- at most MaxChunks
	r.server.metrics.chunks.Add(float64(chunks))
}

// end ends an incomplete response as its fault requires.
func (r *response) end() {
	switch r.a.Fault.Kind {
	case Error:
		r.add(r.api.failure, 0)
		if r.flush() {
			r.record.Outcome = ErrorEvent
		}
	case Stall:
		r.record.Outcome = Disconnected
		if !r.waitForClient() {
			r.record.Outcome = Interrupted
		}
	default:
		r.record.Outcome = Truncated
		r.disconnect()
	}
}

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
		r.record.Outcome = ResetByServer
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// sendObject sends the answer as one JSON object, at the time of the last chunk of a stream.
func (r *response) sendObject() {
	if !r.wait(r.due(r.a.Chunks)) {
		return
	}
	kind := r.a.Fault.Kind
	r.add(r.a.ending(r.api).complete, 0)
	if kind.endsAtChunk() {
		r.b = r.b[:len(r.b)/2]
	}
	if kind == Empty {
		r.b = r.b[:0]
	}
	r.w.Header().Set("Content-Type", "application/json")
	if !r.flush() {
		return
	}
	switch {
	case kind == Empty:
		r.record.Outcome = Truncated
		return
	case kind.endsAtChunk():
		r.end()
		return
	}
	r.count(r.a.Chunks)
	r.record.Outcome = Complete
	if kind == Linger {
		r.waitForClient()
	}
}

// wait waits for the time of a chunk, and records the lateness.
func (r *response) wait(until time.Time) bool {
	if remaining := time.Until(until); remaining > 0 {
		select {
		case <-time.After(remaining):
		case <-r.ctx.Done():
		}
	}
	if r.ctx.Err() != nil {
		r.recordClose()
		return false
	}
	r.record.Late = max(r.record.Late, int32(min(time.Since(until)/time.Microsecond, math.MaxInt32))) // #nosec G115 -- bounded
	return true
}

// waitForClient keeps the connection open. It reports whether the client closed it before the server stopped.
func (r *response) waitForClient() bool {
	select {
	case <-r.ctx.Done():
		r.recordDisconnect()
		return true
	case <-r.server.stopping:
		return false
	}
}

func (r *response) recordClose() {
	select {
	case <-r.server.stopping:
		r.record.Outcome = Interrupted
	default:
		r.record.Outcome = Disconnected
		r.recordDisconnect()
	}
}

func (r *response) recordDisconnect() {
	r.record.DisconnectedUS, r.record.SentBeforeDisconnect = time.Now().UnixMicro(), r.record.Sent
}

func (r *response) flush() bool {
	_, err := r.w.Write(r.b)
	r.b = r.b[:0]
	if err == nil {
		err = http.NewResponseController(r.w).Flush()
	}
	if err != nil {
		r.recordClose()
	}
	return err == nil
}
