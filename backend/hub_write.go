package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

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
// after the end of a delay that a fault injected.
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

const (
	batchSize  = 1024 // maximum number of writes in a batch
	batchShare = 16   // number of writes that a goroutine takes at a time
	minBatch   = 64   // minimum number of writes for which helpers are used
	maxHelpers = 3
)

// A batch is a set of writes to many streams. A write spends nearly all of its time in the kernel, so a helper on a
// second core nearly halves the time of a batch. The scheduler waits for the helpers before it reads a result.
// Therefore, no descriptor is closed or reused while a helper may write to it.
type batch struct {
	writes  []batchWrite
	next    atomic.Int64
	start   chan struct{}
	busy    sync.WaitGroup // helpers that are writing the current batch
	helpers sync.WaitGroup // all helpers
	count   int            // number of helpers
}

// A batchWrite is one write. A batch contains at most one write per device.
type batchWrite struct {
	d    *device
	item item
	n    int // number of bytes that the kernel accepted
	err  error
}

// newBatch returns an empty batch and starts its helpers: one for each core except the first, up to maxHelpers.
func newBatch() *batch {
	b := &batch{writes: make([]batchWrite, 0, batchSize), count: min(maxHelpers, runtime.GOMAXPROCS(0)-1)}
	b.start = make(chan struct{}, b.count)
	for range b.count {
		b.helpers.Go(func() {
			for range b.start {
				b.work()
				b.busy.Done()
			}
		})
	}
	return b
}

func (b *batch) stop() {
	close(b.start)
	b.helpers.Wait()
}

func (b *batch) work() {
	for {
		end := int(b.next.Add(batchShare))
		from := end - batchShare
		if from >= len(b.writes) {
			return
		}
		for i := from; i < min(end, len(b.writes)); i++ {
			w := &b.writes[i]
			w.n, w.err = sendNow(int(w.d.fd), w.item.wire)
		}
	}
}

// deliver adds an item to the batch. It calls push instead for a stream with TLS, a backlog, or a reorder or stall
// fault.
func (h *hub) deliver(d *device, next item) {
	if d.queue != nil || d.tls != nil || d.stalled || d.postponedNoop != nil {
		h.push(d, next)
		return
	}
	h.batch.writes = append(h.batch.writes, batchWrite{d: d, item: next})
	if len(h.batch.writes) == batchSize {
		h.flushBatch()
	}
}

// flushBatch writes the batch and handles the results, which may close streams.
func (h *hub) flushBatch() {
	b := h.batch
	b.next.Store(0)
	if len(b.writes) >= minBatch {
		b.busy.Add(b.count)
		for range b.count {
			b.start <- struct{}{}
		}
	}
	b.work()
	b.busy.Wait()
	for i := range b.writes {
		w := &b.writes[i]
		h.finishWrite(w.d, w.item, w.n, w.err)
		*w = batchWrite{}
	}
	b.writes = b.writes[:0]
}
