package main

import (
	"container/list"
	"time"
)

// endStream stops the noops of a stream at once, and closes the stream after its backlog and the terminator are
// written. A client that does not read them is disconnected after WRITE_TIMEOUT.
func (h *hub) endStream(d *device, reason closeReason) {
	if !d.open || d.ending != stillOpen {
		return
	}
	h.wheel.remove(d)
	d.stalled = false
	if postponed := d.postponedNoop; postponed != nil {
		d.postponedNoop = nil
		h.push(d, *postponed)
	}
	if d.open && d.chunked {
		h.push(d, item{wire: terminator})
	}
	switch {
	case !d.open:
	case d.queue != nil:
		d.ending = reason
		d.queue.delayedUntil = 0
	default:
		h.closeStream(d, reason)
	}
}

// closeStream closes a stream at once. The numbering continues for RESUME_WINDOW, unless forcedisconnect or a drain
// ended the stream. At most MAX_CONNECTIONS numberings continue without a stream; the oldest ends first.
func (h *hub) closeStream(d *device, reason closeReason) { h.closeOrResetStream(d, reason, false) }

// closeOrResetStream closes a stream like closeStream. With reset, the peer of a TCP connection receives a reset.
func (h *hub) closeOrResetStream(d *device, reason closeReason, reset bool) {
	if !h.detach(d, reason, reset) {
		return
	}
	final := reason == closedByCall || reason == closedByDrain || d.ending != stillOpen
	d.ending = stillOpen
	if final || h.cfg.ResumeWindow == 0 || h.draining {
		h.endNumbering(d)
		return
	}
	d.resumable = true
	d.element = h.resumable.PushBack(d)
	for h.resumable.Len() > h.cfg.MaxConnections {
		h.endNumbering(oldest(&h.resumable))
	}
}

// detach closes the descriptor of a stream and records the end. It returns false if the id has no stream.
func (h *hub) detach(d *device, reason closeReason, reset bool) bool {
	if !d.open {
		return false
	}
	h.slots[d.fd] = nil
	switch {
	case d.tls != nil:
		d.tls.end(reset || reason == closedSlow, reset)
		d.tls = nil
	case reset:
		resetNow(int(d.fd))
	default:
		closeNow(int(d.fd))
	}
	d.fd, d.open, d.queue, d.postponedNoop, d.stalled = -1, false, nil, nil, false
	d.reason, d.closedAt = reason, h.clk.unixMicros()
	h.open.Add(-1)
	h.metrics.closings[reason].Inc()
	h.log.Debug("stream closed", "id", d.id, "reason", reason.String(), "sent", d.sentCount)
	return true
}

// endNumbering ends the numbering of an id without a stream. The ledger keeps the rows of the latest LEDGER_KEEP ids
// whose numbering has ended.
func (h *hub) endNumbering(d *device) {
	if d.resumable {
		d.resumable = false
		h.resumable.Remove(d.element)
	}
	h.wheel.remove(d)
	h.replay.forget(d)
	d.replayableAfter = d.seq
	d.finished = true
	d.element = h.finished.PushBack(d)
	for h.finished.Len() > h.cfg.LedgerKeep {
		h.evict(oldest(&h.finished))
	}
}

// evict removes an id from hub.finished and from the ledger. An id with a pending connect stays in the ledger, and
// attach or release sets its new state.
func (h *hub) evict(d *device) {
	d.finished = false
	h.finished.Remove(d.element)
	if d.reserved {
		return
	}
	delete(h.devices, d.id)
	h.evictions++
	d.eviction = h.evictions
	h.countEviction()
}

// countEviction counts an evicted id. It compacts hub.connectOrder when half of its ids, and at least 1024, are
// evicted.
func (h *hub) countEviction() {
	if h.connectOrderEvicted++; h.connectOrderEvicted < 1024 || h.connectOrderEvicted < len(h.connectOrder)/2 {
		return
	}
	remaining := make([]*device, 0, len(h.connectOrder)-h.connectOrderEvicted+1024)
	for _, d := range h.connectOrder {
		if d.eviction == 0 {
			remaining = append(remaining, d)
		}
	}
	h.connectOrder, h.connectOrderEvicted = remaining, 0
}

func oldest(ids *list.List) *device {
	if e := ids.Front(); e != nil {
		return e.Value.(*device)
	}
	return nil
}

// expiry returns the elapsed time at which the RESUME_WINDOW of an id without a stream ends.
func (h *hub) expiry(d *device) time.Duration {
	return time.Duration(d.closedAt-h.clk.unix)*time.Microsecond + h.cfg.ResumeWindow
}

// expireResumable ends numberings, and drops stored messages, after RESUME_WINDOW.
func (h *hub) expireResumable() {
	now := h.clk.elapsed()
	for d := oldest(&h.resumable); d != nil && h.expiry(d) <= now; d = oldest(&h.resumable) {
		h.endNumbering(d)
	}
	h.replay.expire(now - h.cfg.ResumeWindow)
}

// A departure is a descriptor whose peer disconnected. gen identifies the stream, because descriptors are reused.
type departure struct {
	fd  int32
	gen uint32
}

func (h *hub) closeDeparted(departures []departure) {
	for _, g := range departures {
		if int(g.fd) >= len(h.slots) {
			continue
		}
		d := h.slots[g.fd]
		if d == nil || d.gen != g.gen {
			continue
		}
		h.closeStream(d, reasonOf(socketError(int(g.fd))))
	}
}

// forceDisconnect ends the stream or the pending connect of an id, and its numbering. It returns the row in the ledger,
// or errNoStream.
func (h *hub) forceDisconnect(id string) (ledgerRow, error) {
	d := h.devices[id]
	if d == nil || !d.reserved && (!d.open || d.ending != stillOpen) {
		return ledgerRow{}, errNoStream
	}
	d.canceled = d.reserved
	h.endStream(d, closedByCall)
	return d.row(), nil
}

// drain ends all streams, pending connects and numberings, and refuses new streams. When it returns, the streams
// without a backlog are closed; the others close within WRITE_TIMEOUT.
func (h *hub) drain() {
	h.draining = true
	for _, d := range h.connectOrder {
		d.canceled = d.reserved
		switch {
		case d.open:
			h.endStream(d, closedByDrain)
		case d.resumable:
			h.endNumbering(d)
		}
	}
}

func (h *hub) closeAll() {
	h.draining = true
	for _, d := range h.connectOrder {
		if d.open {
			h.closeStream(d, closedByDrain)
		}
	}
}
