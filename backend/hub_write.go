package main

import "time"

// Pace of the retries for clients whose socket buffer is full: never quicker
// than retryPace, and slower the more they are, so that a crowd of them costs
// the scheduler a few percent at most.
const (
	retryPace      = 25 * time.Millisecond
	retryPerClient = 20 * time.Microsecond
)

// push puts an item on a stream, or behind what the client has not taken yet.
// It never waits. The stream may be closed afterwards.
func (h *hub) push(d *device, it item) {
	if d.swapped != nil && it.seq != 0 {
		// The noop held back by a reorder fault follows the one after it.
		held := *d.swapped
		d.swapped = nil
		both := it
		both.seq, both.count = 0, 0
		h.push(d, both)
		held.seq, held.count = it.seq, held.count+it.count
		it = held
	}
	if d.stalled {
		it.wire = nil
	}
	switch {
	case !d.open:
	case d.queue != nil:
		h.enqueue(d, it)
	default:
		h.write(d, it)
	}
}

// write hands an item to the kernel; what does not fit is queued.
func (h *hub) write(d *device, it item) {
	n, err := d.take(it.wire)
	h.wrote(d, it, n, err)
}

// wrote acts on the result of a write: n bytes of the item were taken.
func (h *hub) wrote(d *device, it item, n int, err error) {
	switch err {
	case nil:
		h.count(d, it)
	case errNoRoom:
		it.wire = it.wire[n:]
		d.slow = true
		h.enqueue(d, it)
	default:
		h.writeFailed(d, err)
	}
}

// take offers bytes, if there are any, to the kernel, under TLS to the stream's writer. It never
// waits: errNoRoom when not all were taken.
func (d *device) take(wire []byte) (int, error) {
	switch {
	case len(wire) == 0:
		return 0, nil
	case d.tls != nil:
		return d.tls.take(wire)
	}
	return sendNow(int(d.fd), wire)
}

// count counts an item that the kernel has.
func (h *hub) count(d *device, it item) {
	switch {
	case !d.count(it):
	case it.message:
		h.tally[messagesSent]++
	default:
		h.tally[noopsSent] += int(it.count)
	}
}

// writeFailed ends a stream whose connection is broken.
func (h *hub) writeFailed(d *device, err error) {
	h.tally[sendErrors]++
	h.shut(d, reasonOf(err))
}

// reasonOf returns the reason of a close for a socket error.
func reasonOf(err error) closeReason {
	if clientWentAway(err) {
		return closedByClient
	}
	return closedByError
}

// enqueue keeps an item until the client takes it, and cuts the client off
// when it has let too much pile up.
func (h *hub) enqueue(d *device, it item) {
	now := h.clk.elapsed()
	q := h.backlogOf(d, now)
	q.items = append(q.items, queuedItem{item: it, since: max(now, q.until)})
	q.bytes += len(it.wire)
	if q.until <= now && (len(q.items) > q.room || q.bytes > maxBacklogBytes) {
		h.cutOff(d)
	}
}

// backlogOf returns the device's backlog, a new one if it has none.
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

// cutOff ends the stream of a client that does not read.
func (h *hub) cutOff(d *device) {
	d.slow = true
	h.tally[slowConsumers]++
	h.shut(d, closedSlow)
}

// retryLagging tries again for every client that had no room.
func (h *hub) retryLagging() {
	now := h.clk.elapsed()
	if len(h.lagging) == 0 || now < h.retryAt {
		return
	}
	list := h.lagging
	kept := list[:0]
	for _, d := range list {
		if d.queue != nil {
			h.flush(d, now)
		}
		if d.queue != nil {
			kept = append(kept, d)
		} else {
			d.queued = false
		}
	}
	clear(list[len(kept):])
	h.lagging = kept
	h.retryAt = now + max(retryPace, time.Duration(len(kept))*retryPerClient)
}

// flush writes as much of a backlog as the client takes. The stream is cut off
// when its oldest frame has waited for WRITE_TIMEOUT, and closed when its last
// frames are out.
func (h *hub) flush(d *device, now time.Duration) {
	q := d.queue
	if q.until > now {
		return
	}
	for len(q.items) > 0 {
		it := &q.items[0]
		n, err := d.take(it.wire)
		q.bytes -= n
		it.wire = it.wire[n:]
		if err == errNoRoom {
			if now-it.since > h.cfg.WriteTimeout {
				h.cutOff(d)
			}
			d.slow = true
			return
		}
		if err != nil {
			h.writeFailed(d, err)
			return
		}
		h.count(d, it.item)
		q.items = q.items[1:]
	}
	d.queue = nil
	if d.ending != stillOpen {
		h.shut(d, d.ending)
	}
}
