package main

import (
	"bytes"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// injectAtNoop applies a fault. The ledger counts an omitted noop as sent, so that a run can detect the fault.
func (h *hub) injectAtNoop(d *device, f *fault.Fault, noop item) {
	h.log.Warn("fault injected", "fault", string(f.Kind), "id", d.id, "number", noop.seq)
	switch f.Kind {
	case fault.Drop:
		noop.wire = nil
		h.push(d, noop)
	case fault.Duplicate:
		noop.wire = append(bytes.Clone(noop.wire), noop.wire...)
		h.push(d, noop)
	case fault.Corrupt:
		event := append(eventHead(noop.seq, h.frames.sent), corruptData...)
		noop.wire = newFrame(event).bytes(d.chunked)
		h.push(d, noop)
	case fault.Reorder:
		d.postponedNoop = &noop // push writes it after the next item with a number
	case fault.Delay:
		now := h.clk.elapsed()
		q := h.backlogOf(d, now)
		q.delayedUntil = max(q.delayedUntil, now) + f.Wait
		h.push(d, noop)
	case fault.Stall:
		d.stalled = true
		h.push(d, noop)
	case fault.Truncate:
		noop.wire = noop.wire[:len(noop.wire)/2]
		h.push(d, noop)
		h.closeStream(d, closedByFault)
	case fault.Reset:
		h.closeOrResetStream(d, closedByFault, true)
	case fault.Die:
		killSelf()
	}
}
