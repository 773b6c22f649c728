package main

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// tlsQueueLength is the maximum number of frames that wait in the queue of a TLS writer.
const tlsQueueLength = 8

// A tlsWriter writes one TLS stream. The scheduler cannot write it through its descriptor, because crypto/tls has the keys, and its Write
// may block. Each TLS stream therefore has a goroutine and a short queue, which use tens of kilobytes in addition to the few hundred bytes
// of a plain stream. nginx in front of the backend avoids this cost. In the ledger a frame counts as sent when this writer accepts it, at
// most tlsQueueLength frames before the kernel accepts it.
type tlsWriter struct {
	conn    *tls.Conn
	raw     net.Conn
	queue   chan []byte
	timeout time.Duration
}

// newTLSWriter starts a writer. It calls onError at most once, with the error of a write. The connection stays open
// until end, because the scheduler uses its descriptor until then.
func newTLSWriter(conn *tls.Conn, timeout time.Duration, onError func(*tlsWriter, error)) *tlsWriter {
	w := &tlsWriter{conn: conn, raw: conn.NetConn(), queue: make(chan []byte, tlsQueueLength), timeout: timeout}
	_ = conn.SetDeadline(time.Time{})
	go w.run(onError)
	return w
}

// run writes the queue until end, and then closes the connection.
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

// write queues bytes and does not wait. It returns errNoRoom if the queue is full.
func (w *tlsWriter) write(wire []byte) (int, error) {
	select {
	case w.queue <- wire:
		return len(wire), nil
	default:
		return 0, errNoRoom
	}
}

// end closes the stream after the queue is written, or immediately with abort. With reset, an abort sends a TCP reset. end does not block.
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

// closeBrokenTLS closes the stream of a broken TLS writer.
func (h *hub) closeBrokenTLS(d *device, w *tlsWriter, err error) {
	h.post(func() {
		if d.open && d.tls == w {
			h.metrics.counters[sendErrors].Inc()
			reason := closedByClient
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				d.slow, reason = true, closedSlow
				h.metrics.counters[slowConsumers].Inc()
			}
			h.shut(d, reason)
		}
	})
}
