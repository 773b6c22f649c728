package soak

import (
	"slices"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A step adds streams to the open streams of the previous steps. soak-streams.d.ts documents it.
type step struct {
	Name       string  `js:"name"`    // tag `scenario` of its samples
	Streams    int     `js:"streams"` // open at the end of the step
	Ramp       float64 `js:"ramp"`    // ms in which the added streams open
	For        float64 `js:"for"`     // ms, the ramp included; with broadcasts, up to the first broadcast
	Broadcasts int     `js:"broadcasts"`
	Every      float64 `js:"every"` // ms from one broadcast to the next
	Until      float64 `js:"until"` // ms from the start of the first step to the last possible broadcast; 0: no limit
}

// Metrics of the steps.
const (
	stepStreams = "capacity_streams" // number of streams before a step, and at its end
	stepConnect = "capacity_connect" // first dial to headers, of the streams that a step added
)

// runSteps runs the steps, and requests the ends of the streams after the last one. Without broadcasts, the first step
// in which a stream has a fault is the last one.
func (h *holding) runSteps() {
	defer h.release()
	start := time.Now()
	for i := range h.Steps {
		st := &h.Steps[i]
		added, err := h.grow(st)
		if err != nil || !h.runStep(st, added, start) {
			break
		}
	}
	h.end()
}

func (h *holding) grow(st *step) (added []*holdStream, err error) {
	result := make(chan error, 1)
	first := len(h.streams)
	var numbers []int
	for n := first; n < st.Streams; n++ {
		numbers = append(numbers, n)
	}
	h.group.OnLoop(func() error {
		err := h.add(numbers)
		result <- err
		return err // interrupts the iteration
	})
	select {
	case err = <-result:
	case <-h.ctx.Done():
		err = h.ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return h.streams[first:], nil
}

// runStep opens the streams of a step, sends its broadcasts, and reports whether the next step may follow. It omits
// broadcasts for which no time is left, such as after a lost broadcast. first is the start of the first step.
func (h *holding) runStep(st *step, added []*holdStream, first time.Time) bool {
	start, tags := time.Now(), h.tagsOf(st.Name)
	if h.broadcaster == nil {
		h.sample(stepStreams, tags, start, float64(len(h.streams)-len(added)))
	}
	h.rampUp(added, milli(st.Ramp))
	sleep(h.ctx, time.Until(start.Add(milli(st.For))))
	if h.broadcaster != nil {
		for range st.Broadcasts {
			sendTime := time.Now()
			if st.Until > 0 && sendTime.Sub(first) > milli(st.Until) {
				break
			}
			h.broadcaster.measure(tags)
			sleep(h.ctx, max(time.Until(sendTime.Add(milli(st.Every))), time.Millisecond))
		}
		return h.ctx.Err() == nil
	}
	faulty := h.hasFaultyStream()
	h.sample(stepStreams, tags, time.Now(), float64(len(h.streams)))
	for _, s := range added {
		if sums := s.ledger().Sums(); sums.Streams > 0 {
			h.sample(stepConnect, tags, time.Now(), metrics.D(sums.Connect))
		}
	}
	return !faulty && h.ctx.Err() == nil
}

// hasFaultyStream reports whether a stream has a fault or stays silent. A silent stream is checked twice, because its
// next message may be late.
func (h *holding) hasFaultyStream() bool {
	if slices.ContainsFunc(h.streams, h.isFaulty) {
		return true
	}
	if !slices.ContainsFunc(h.streams, h.isSilent) {
		return false
	}
	c := &h.m.recorder.config
	sleep(h.ctx, c.Interval+min(c.LatenessLimit, c.Interval/2))
	return slices.ContainsFunc(h.streams, func(s *holdStream) bool { return h.isFaulty(s) || h.isSilent(s) })
}

// isFaulty reports whether a stream has ended, never opened, or has a fault or a late message.
func (h *holding) isFaulty(s *holdStream) bool {
	h.mu.Lock()
	finished := s.finished
	h.mu.Unlock()
	sums := s.ledger().Sums()
	return finished || sums.Streams == 0 || sums.Missed()+sums.Faults()+sums.Late > 0
}

// isSilent reports whether a message is overdue on an open stream.
func (h *holding) isSilent(s *holdStream) bool {
	c, sums := &h.m.recorder.config, s.ledger().Sums()
	return sums.State == ledger.Open && s.observer.now()-sums.LastAt > c.Interval*3/2+c.LatenessLimit
}
