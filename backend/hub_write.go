package main

import "time"

// Writes to clients with a full socket buffer are retried together. The time between retries is retryPace, or
// retryPerClient times the number of these clients if that is longer. Retries therefore use at most a few percent of
// the scheduler's time.
const (
	retryPace      = 25 * time.Millisecond
	retryPerClient = 20 * time.Microsecond
)

// push writes an item to a stream, or appends it to the backlog. It never blocks, and may close the stream.
func (h *hub) push(d *device, next item) {
	if d.postponedNoop != nil && next.seq != 0 {
		// A reorder fault delays a noop until the next item with a number is written. The ledger counts both after the
		// second write.
		postponed := *d.postponedNoop
		d.postponedNoop = nil
		uncounted := next
		uncounted.seq, uncounted.count, uncounted.messages = 0, 0, 0
		h.push(d, uncounted)
		postponed.seq, postponed.count, postponed.messages = next.seq, postponed.count+next.count, next.messages
		next = postponed
	}
	if d.stalled {
		next.wire = nil
	}
	switch {
	case !d.open:
	case d.queue != nil:
		h.enqueue(d, next)
	default:
		h.write(d, next)
	}
}

func (h *hub) write(d *device, next item) {
	n, err := d.write(next.wire)
	h.finishWrite(d, next, n, err)
}

// finishWrite handles the result of a write: n is the number of accepted bytes.
func (h *hub) finishWrite(d *device, next item, n int, err error) {
	switch err {
	case nil:
		h.count(d, next)
	case errBufferFull:
		next.wire = next.wire[n:]
		d.slow = true
		h.enqueue(d, next)
	default:
		h.closeBroken(d, err)
	}
}

// write writes to the connection. It never blocks, and returns errBufferFull after an incomplete write.
func (d *device) write(wire []byte) (int, error) {
	switch {
	case len(wire) == 0:
		return 0, nil
	case d.tls != nil:
		return d.tls.write(wire)
	}
	return sendNow(int(d.fd), wire)
}

func (h *hub) count(d *device, next item) {
	if d.count(next) {
		h.metrics.counters[messagesSent].Add(float64(next.messages))
		h.metrics.counters[noopsSent].Add(float64(next.count - next.messages))
	}
}

func (h *hub) closeBroken(d *device, err error) {
	h.metrics.counters[sendErrors].Inc()
	h.closeStream(d, reasonOf(err))
}

func reasonOf(err error) closeReason {
	if isDisconnect(err) {
		return closedByClient
	}
	return closedByError
}

// enqueue appends to the backlog. It disconnects a client whose backlog is too large, but not before the first flush
// after a delay fault.
func (h *hub) enqueue(d *device, next item) {
	now := h.clk.elapsed()
	q := h.backlogOf(d, now)
	q.items = append(q.items, queuedItem{item: next, since: max(now, q.delayedUntil)})
	q.bytes += len(next.wire)
	if q.delayedUntil == 0 && (len(q.items) > q.room || q.bytes > maxBacklogBytes) {
		h.disconnectSlow(d)
	}
}

// backlogOf returns the backlog of a device. It creates the backlog if necessary, and adds the device to hub.lagging.
func (h *hub) backlogOf(d *device, now time.Duration) *backlog {
	if d.queue == nil {
		d.queue = &backlog{room: h.cfg.MaxPending}
	}
	if !d.queued {
		d.queued = true
		if len(h.lagging) == 0 {
			h.retryAt = now + retryPace
		}
		h.lagging = append(h.lagging, d)
	}
	return d.queue
}

func (h *hub) disconnectSlow(d *device) {
	d.slow = true
	h.metrics.counters[slowConsumers].Inc()
	h.closeStream(d, closedSlow)
}

func (h *hub) retryLagging() {
	now := h.clk.elapsed()
	if len(h.lagging) == 0 || now < h.retryAt {
		return
	}
	list := h.lagging
	remaining := list[:0]
	for _, d := range list {
		if d.queue != nil {
			h.flush(d, now)
		}
		if d.queue != nil {
			remaining = append(remaining, d)
		} else {
			d.queued = false
		}
	}
	clear(list[len(remaining):])
	h.lagging = remaining
	h.retryAt = now + max(retryPace, time.Duration(len(remaining))*retryPerClient)
}

// flush writes as much of a backlog as the socket accepts. It disconnects a client whose oldest item has waited for
// WRITE_TIMEOUT, and closes an ending stream after its last item.
func (h *hub) flush(d *device, now time.Duration) {
	q := d.queue
	if q.delayedUntil > now {
		return
	}
	q.delayedUntil = 0
	for len(q.items) > 0 {
		next := &q.items[0]
		n, err := d.write(next.wire)
		q.bytes -= n
		next.wire = next.wire[n:]
		if err == errBufferFull {
			if now-next.since > h.cfg.WriteTimeout {
				h.disconnectSlow(d)
			}
			d.slow = true
			return
		}
		if err != nil {
			h.closeBroken(d, err)
			return
		}
		h.count(d, next.item)
		q.items = q.items[1:]
	}
	d.queue = nil
	if d.ending != stillOpen {
		h.closeStream(d, d.ending)
	}
}
