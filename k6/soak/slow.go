package soak

import (
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"
)

// Metrics of slow streams.
const (
	slowStarted     = "slow_started"
	slowAccepted    = "slow_accepted"     // broadcasts that the service accepted
	slowRejected    = "slow_rejected"     // broadcasts that the service did not accept
	slowDue         = "slow_due"          // deliveries of accepted broadcasts that the other streams expect
	slowArrived     = "slow_arrived"      // of these, deliveries that arrived
	slowRepeated    = "slow_repeated"     // deliveries on the other streams that arrived again, or after a later one
	slowFilled      = "slow_filled"       // slow streams that were closed, or whose backlog reached fillKB
	slowBacklog     = "slow_backlog"      // KB that an open slow stream has not received when the slow reads end
	slowClosed      = "slow_closed"       // time until the service closed a slow stream
	slowClosedLater = "slow_closed_later" // slow streams that closed only after they were read fast again
	slowComplete    = "slow_complete"     // slow streams that were open at the end of the phase and received all broadcasts
)

// slow reads streams slowly for p.For, and then fast again for p.After. It counts the slow streams by outcome, and the
// broadcasts on the other streams.
func (h *holding) slow(p *phase) {
	tags := h.tagsOf(p.Name)
	initial, bytes := make([]uint64, len(h.streams)), h.bytesRead()
	for i := range h.streams {
		initial[i] = h.receivedCount(i)
	}
	count := func(name string, n float64) { h.sample(name, tags, time.Now(), n) }
	var slow []int // indexes in h.streams
	for i, s := range h.streams {
		if !p.actsOn(int(s.n)) {
			continue
		}
		open, err := s.stream.Slow(p.Rate)
		if err != nil {
			h.state.Logger.WithError(err).Error("hold: slow")
			break
		}
		if open {
			slow = append(slow, i)
		}
	}
	start := time.Now()
	count(slowStarted, float64(len(slow)))
	sent := h.fill(p, tags, start, initial)
	resumedAt, kb := time.Now(), h.messageKB(h.bytesRead()-bytes, initial)
	if p.MessageKB > 0 {
		kb = min(kb, p.MessageKB) // less if the service compresses the messages
	}
	for _, i := range slow {
		s := h.streams[i]
		missing := (float64(sent) - float64(h.receivedCount(i)-initial[i])) * kb
		if s.isOver() || missing >= p.FillKB {
			count(slowFilled, 1)
		}
		if !s.isOver() {
			count(slowBacklog, missing)
			_, _ = s.stream.Slow(math.Inf(1)) // cannot fail for a slow stream
		}
	}
	sleep(h.ctx, milli(p.After))
	for _, i := range slow {
		s := h.streams[i]
		switch closedAt := time.Unix(0, s.phase.closedAt.Load()); {
		case s.isOver() && closedAt.Before(resumedAt):
			count(slowClosed, metrics.D(closedAt.Sub(start)))
		case s.isOver():
			count(slowClosedLater, 1)
		case h.broadcaster != nil && h.receivedCount(i) >= sent: // for published messages, the verdict decides
			count(slowComplete, 1)
		}
	}
	if h.broadcaster != nil {
		h.countArrivals(p, sent, count)
	}
}

// bytesRead returns the number of bytes that the virtual user has read from its connections.
func (h *holding) bytesRead() int64 {
	d, ok := h.state.Dialer.(*netext.Dialer)
	if !ok {
		return 0
	}
	return atomic.LoadInt64(&d.BytesRead)
}

// messageKB returns the mean size on the wire of the messages received since the initial counts, in KB.
func (h *holding) messageKB(bytes int64, initial []uint64) float64 {
	var messages uint64
	for i := range h.streams {
		messages += h.receivedCount(i) - initial[i]
	}
	return float64(bytes) / 1024 / float64(max(messages, 1))
}

// fill sends broadcasts until the end of the slow reads, to fill the buffers of the slow streams. Without broadcasts it
// only waits, and the messages of the run fill the buffers. It returns the number of accepted broadcasts; without
// broadcasts, the number of messages on the stream that received most.
func (h *holding) fill(p *phase, tags metrics.TagsAndMeta, start time.Time, initial []uint64) (sent uint64) {
	end := start.Add(milli(p.For))
	if h.broadcaster == nil {
		sleep(h.ctx, time.Until(end))
		for i := range h.streams {
			sent = max(sent, h.receivedCount(i)-initial[i])
		}
		return sent
	}
	for n := 1.0; n <= p.For/1000*p.PerSecond; n++ {
		sleep(h.ctx, time.Until(start.Add(milli(n*1000/p.PerSecond))))
		if time.Since(end) > time.Second || h.ctx.Err() != nil {
			break // the service accepts broadcasts too slowly, or the iteration was interrupted
		}
		name := slowRejected
		if _, resp := h.broadcaster.send(tags, httpext.ResponseTypeNone); resp != nil && resp.Status == http.StatusOK {
			name = slowAccepted
			sent++
		}
		h.sample(name, tags, time.Now(), 1)
	}
	sleep(h.ctx, time.Until(end))
	return sent
}

// countArrivals counts the broadcasts on the streams that are not slow.
func (h *holding) countArrivals(p *phase, sent uint64, count func(name string, n float64)) {
	var due, arrived, repeats uint64
	h.broadcaster.mu.Lock()
	for i, s := range h.streams {
		if !p.actsOn(int(s.n)) {
			subscriber := h.broadcaster.subscribers[i]
			due += sent
			arrived += min(uint64(subscriber.received), sent) // #nosec G115 -- a count
			repeats += uint64(subscriber.duplicates)          // #nosec G115 -- a count
		}
	}
	h.broadcaster.mu.Unlock()
	count(slowDue, float64(due))
	count(slowArrived, float64(arrived))
	count(slowRepeated, float64(repeats))
}

// receivedCount returns the number of broadcasts on the stream at index i, or of messages if there are no broadcasts.
func (h *holding) receivedCount(i int) uint64 {
	b := h.broadcaster
	if b == nil {
		return h.streams[i].ledger().Sums().Received
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(b.subscribers[i].received) // #nosec G115 -- a count
}

// isOver reports whether a stream with a phase has ended.
func (s *holdStream) isOver() bool {
	select {
	case <-s.phase.ended:
		return true
	default:
		return false
	}
}
