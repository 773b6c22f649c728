package main

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// Frames handed to a TLS writer ahead of the one it writes.
const tlsAhead = 8

// A tlsWriter writes one TLS stream. A TLS stream cannot be a bare descriptor: Go has its keys and record state, and
// its Write may wait. So each has a goroutine and a short bounded queue, which need some tens of kilobytes in
// addition to the few hundred bytes of a plain stream; put nginx in front if that matters. In the ledger a frame
// counts as sent when this writer accepted it, at most tlsAhead frames before the kernel does.
type tlsWriter struct {
	conn    *tls.Conn
	raw     net.Conn
	queue   chan []byte
	timeout time.Duration
}

// newTLSWriter starts the writer. failed is called at most once, with the
// error of a write. The connection is closed after end, never before: its
// descriptor stays the scheduler's until then.
func newTLSWriter(conn *tls.Conn, timeout time.Duration, failed func(*tlsWriter, error)) *tlsWriter {
	o := &tlsWriter{conn: conn, raw: conn.NetConn(), queue: make(chan []byte, tlsAhead), timeout: timeout}
	_ = conn.SetDeadline(time.Time{})
	go o.run(failed)
	return o
}

func (o *tlsWriter) run(failed func(*tlsWriter, error)) {
	writeFailed := false
	for wire := range o.queue {
		if writeFailed {
			continue
		}
		_ = o.conn.SetWriteDeadline(time.Now().Add(o.timeout))
		if _, err := o.conn.Write(wire); err != nil {
			writeFailed = true
			failed(o, err)
		}
	}
	_ = o.conn.Close()
}

// write queues bytes without waiting; it returns errNoRoom when the queue is full.
func (o *tlsWriter) write(wire []byte) (int, error) {
	select {
	case o.queue <- wire:
		return len(wire), nil
	default:
		return 0, errNoRoom
	}
}

// end closes the stream once the queue is written; at once when abort is set, and then with a TCP reset if reset is.
// It does not wait.
func (o *tlsWriter) end(abort, reset bool) {
	if reset {
		if tcp, ok := unwrap(o.raw).(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	if abort {
		_ = o.raw.Close()
	}
	close(o.queue)
}

// tlsFailed closes the stream of a broken TLS writer.
func (h *hub) tlsFailed(d *device, o *tlsWriter, err error) {
	h.post(func() {
		if d.open && d.tls == o {
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
