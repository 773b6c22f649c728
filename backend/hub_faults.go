package main

import (
	"bytes"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// injectAtNoop does to a noop what the fault says. The number of a dropped,
// corrupted, truncated or stalled noop is counted as sent: the lie that a soak
// has to find.
func (h *hub) injectAtNoop(d *device, f *fault.Fault, it item) {
	h.log.Warn("fault injected", "fault", string(f.Kind), "id", d.id, "number", it.seq)
	switch f.Kind {
	case fault.Drop:
		it.wire = nil
		h.push(d, it)
	case fault.Duplicate:
		it.wire = append(bytes.Clone(it.wire), it.wire...)
		h.push(d, it)
	case fault.Corrupt:
		event := append(appendHead(nil, it.seq, h.frames.sent), corruptData...)
		it.wire = newFrame(event).bytes(d.chunked)
		h.push(d, it)
	case fault.Reorder:
		d.swapped = &it // push sends it after the next number
	case fault.Delay:
		now := h.clk.elapsed()
		q := h.backlogOf(d, now)
		q.until = max(q.until, now) + f.Wait
		h.push(d, it)
	case fault.Stall:
		d.stalled = true
		h.push(d, it)
	case fault.Truncate:
		it.wire = it.wire[:len(it.wire)/2]
		h.push(d, it)
		h.shut(d, closedByFault)
	case fault.Reset:
		h.shutAs(d, closedByFault, true)
	case fault.Die:
		killSelf()
	}
}
