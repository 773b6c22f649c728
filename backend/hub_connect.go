package main

import (
	"net/http"
	"time"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// A reservation reserves an id until attach or release. It reserves nothing if a fault will respond to the connect.
type reservation struct {
	d     *device // nil: a fault will respond to the first connect of an id
	last  lastEventID
	fault *fault.Fault // fault of this connect; nil: none
}

// A claim is a connection that was taken from net/http.
type claim struct {
	fd      int
	tls     *tlsWriter // nil on plain connections
	chunked bool
}

// reserve accepts or refuses a connect. With a Last-Event-ID and RESUME_WINDOW above 0, a second stream of an id
// replaces the first, unless the first is ending or another connect of the id is pending. Any other second stream is
// refused.
func (h *hub) reserve(id string, last lastEventID) (*reservation, error) {
	d := h.devices[id]
	takeover := d != nil && d.open && d.ending == stillOpen && last.explicit && h.cfg.ResumeWindow > 0
	switch {
	case h.draining:
		return nil, refusal(http.StatusServiceUnavailable, "draining", "the service is stopping; connect again in a moment")
	case d != nil && d.reserved, d != nil && d.open && !takeover:
		return nil, refusal(http.StatusConflict, "duplicate",
			"this id already has a stream; end it with DELETE /event/forcedisconnect, use another id, or resume it with Last-Event-ID")
	case !takeover && h.openStreams()+h.reservations >= h.cfg.MaxConnections:
		return nil, refusal(http.StatusServiceUnavailable, "full", "the maximum number of streams is open; wait, or raise MAX_CONNECTIONS")
	}
	r := &reservation{d: d, last: last}
	if !h.faults.Empty() {
		r.fault = h.faults.AtConnect(id, h.clk.unixMicros())
		if r.fault != nil && r.fault.Kind != fault.SlowHeaders {
			return r, nil
		}
	}
	if d == nil {
		r.d = &device{id: id, fd: -1, bucket: -1}
		h.devices[id] = r.d
		h.connectOrder = append(h.connectOrder, r.d)
	}
	r.d.reserved, r.d.canceled = true, false
	h.reservations++
	return r, nil
}

// release cancels a reservation whose connection could not be taken from net/http.
func (h *hub) release(r *reservation) {
	d := r.d
	d.reserved = false
	h.reservations--
	switch {
	case d.open, d.resumable, d.finished:
	case d.streams == 0:
		delete(h.devices, d.id)
		d.eviction = 1 // any number except 0: an id that never had a stream is not in the ledger
		h.countEviction()
	default:
		h.endNumbering(d)
	}
}

// attach makes a connection the stream of an id, in place of the previous stream. It writes the response headers and
// the missed events. It then ends the new stream if forcedisconnect or a drain
// canceled the pending connect.
func (h *hub) attach(r *reservation, c claim) {
	d := r.d
	d.reserved = false
	h.reservations--
	if d.open {
		h.detach(d, closedReplaced, false)
		d.ending = stillOpen
	}
	from := h.numberFor(d, r.last)
	h.install(d, c)
	h.push(d, item{wire: responseHead(c.chunked)})
	if d.open {
		if err := h.watcher.add(c.fd, d.gen); err != nil {
			h.log.Error("cannot watch a stream", "id", d.id, "error", err.Error())
			h.closeStream(d, closedByError)
		}
	}
	h.replayFrom(d, from)
	switch {
	case h.draining:
		h.endStream(d, closedByDrain)
	case d.canceled:
		h.endStream(d, closedByCall)
	}
}

// numberFor sets the numbering of a new stream, and returns the first number to replay (above d.seq: no replay):
//
//   - no Last-Event-ID: a new numbering from 1;
//   - a number within an active numbering: replay the numbers after it;
//   - a number within an ended numbering (expired, or forcedisconnect):
//     continue after its end, so that losses appear as a gap;
//   - a number above the last one, or any number of an id that is not in the ledger, for example after a restart:
//     continue after it.
func (h *hub) numberFor(d *device, last lastEventID) uint64 {
	isActive := d.bucket >= 0 // the numbering has not ended
	switch {
	case d.resumable:
		d.resumable = false
		h.resumable.Remove(d.element)
	case d.finished:
		d.finished = false
		h.finished.Remove(d.element)
	}
	switch {
	case !last.explicit:
		h.replay.forget(d)
		d.renumber(0)
		d.tick = h.wheel.tickAt(h.clk.elapsed()) // noops that are already due do not belong to this stream
	case last.number > d.seq || d.streams == 0:
		h.replay.forget(d)
		d.renumber(last.number)
	case isActive:
		h.metrics.counters[streamsResumed].Inc()
		return last.number + 1
	}
	return d.seq + 1
}

// install makes a connection the stream of a device. It adds an id without an active numbering to the wheel.
func (h *hub) install(d *device, c claim) {
	if c.fd >= len(h.slots) {
		larger := make([]*device, max(c.fd+1, 2*len(h.slots), 256))
		copy(larger, h.slots)
		h.slots = larger
	}
	now := h.clk.elapsed()
	h.gen++
	h.slots[c.fd] = d
	d.fd, d.gen, d.tls, d.chunked = int32(c.fd), h.gen, c.tls, c.chunked // #nosec G115 -- a descriptor
	d.open, d.reason, d.closedAt = true, stillOpen, 0
	d.openedAt = h.clk.unixMicros()
	d.streams++
	if d.bucket < 0 {
		d.tick = h.wheel.tickAt(now)
		h.wheel.add(d)
	}
	h.open.Add(1)
	h.metrics.counters[streamsOpened].Inc()
	h.newStreams++
	h.lastAttach = now
	h.log.Debug("stream opened", "id", d.id, "last_number", d.seq)
}

func responseHead(chunked bool) []byte {
	b := make([]byte, 0, 256)
	b = append(b, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"+
		"Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\nDate: "...)
	b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
	if chunked {
		b = append(b, "\r\nTransfer-Encoding: chunked"...)
	}
	return append(b, "\r\nConnection: close\r\n\r\n"...)
}
