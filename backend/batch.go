package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

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
