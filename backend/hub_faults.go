package main

import (
	"bytes"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// injectAtNoop applies a fault to a noop. The ledger counts a dropped, corrupted, truncated or stalled noop as sent, so that a soak must
// detect the fault.
func (h *hub) injectAtNoop(d *device, f *fault.Fault, next item) {
	h.log.Warn("fault injected", "fault", string(f.Kind), "id", d.id, "number", next.seq)
	switch f.Kind {
	case fault.Drop:
		next.wire = nil
		h.push(d, next)
	case fault.Duplicate:
		next.wire = append(bytes.Clone(next.wire), next.wire...)
		h.push(d, next)
	case fault.Corrupt:
		event := append(appendHead(nil, next.seq, h.frames.sent), corruptData...)
		next.wire = newFrame(event).bytes(d.chunked)
		h.push(d, next)
	case fault.Reorder:
		d.swapped = &next // push writes it after the next number
	case fault.Delay:
		now := h.clk.elapsed()
		q := h.backlogOf(d, now)
		q.delayedUntil = max(q.delayedUntil, now) + f.Wait
		h.push(d, next)
	case fault.Stall:
		d.stalled = true
		h.push(d, next)
	case fault.Truncate:
		next.wire = next.wire[:len(next.wire)/2]
		h.push(d, next)
		h.shut(d, closedByFault)
	case fault.Reset:
		h.shutOrReset(d, closedByFault, true)
	case fault.Die:
		killSelf()
	}
}
