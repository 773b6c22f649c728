package main

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// tlsQueueLength is the maximum number of frames that wait in the queue of a TLS writer.
const tlsQueueLength = 8

// A tlsWriter writes one TLS stream, with a goroutine and a short queue. The scheduler cannot write to the descriptor,
// because crypto/tls encrypts the data, and cannot call Conn.Write, which may block. A TLS stream uses tens of KiB, a
// plain stream 1 to 2 KiB. The ledger counts a frame as sent when it is in the queue. Up to tlsQueueLength+1 counted
// frames may therefore not have reached the kernel.
type tlsWriter struct {
	conn    *tls.Conn
	raw     net.Conn
	queue   chan []byte
	timeout time.Duration
}

// newTLSWriter starts a writer. After the first write error, the writer calls onError once and discards all later
// frames. The connection stays open until end is called, because the scheduler uses the descriptor until then.
func newTLSWriter(conn *tls.Conn, timeout time.Duration, onError func(*tlsWriter, error)) *tlsWriter {
	w := &tlsWriter{conn: conn, raw: conn.NetConn(), queue: make(chan []byte, tlsQueueLength), timeout: timeout}
	_ = conn.SetDeadline(time.Time{})
	go w.run(onError)
	return w
}

// run writes the frames of the queue until the queue is closed and empty, and then closes the connection.
func (w *tlsWriter) run(onError func(*tlsWriter, error)) {
	failed := false
	for wire := range w.queue {
		if failed {
			continue
		}
		_ = w.conn.SetWriteDeadline(time.Now().Add(w.timeout))
		if _, err := w.conn.Write(wire); err != nil {
			failed = true
			onError(w, err)
		}
	}
	_ = w.conn.Close()
}

// write queues bytes and does not wait. It returns errBufferFull if the queue is full.
func (w *tlsWriter) write(wire []byte) (int, error) {
	select {
	case w.queue <- wire:
		return len(wire), nil
	default:
		return 0, errBufferFull
	}
}

// end closes the stream after the queue is written, or at once with abort. With reset, an abort sends a TCP reset. end
// does not block.
func (w *tlsWriter) end(abort, reset bool) {
	if reset {
		if tcp, ok := unwrap(w.raw).(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	if abort {
		_ = w.raw.Close()
	}
	close(w.queue)
}

// closeBrokenTLS closes a stream after a write error: a timeout means a slow client, any other error a disconnect.
func (h *hub) closeBrokenTLS(d *device, w *tlsWriter, err error) {
	h.post(func() {
		if d.open && d.tls == w {
			h.metrics.counters[sendErrors].Inc()
			reason := closedByClient
			var netErr net.Error
			if errors.As(err, &netErr) && netErr.Timeout() {
				d.slow, reason = true, closedSlow
				h.metrics.counters[slowConsumers].Inc()
			}
			h.closeStream(d, reason)
		}
	})
}
