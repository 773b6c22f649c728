package soak

import (
	"sync/atomic"
	"time"
)

// probeEvery is how often the process checks whether it runs on time.
const probeEvery = 100 * time.Millisecond

// A stallProbe measures stalls of this process: how much too late a timer fires. In that time no noop
// could be read either, whatever the server did. It sees a starved machine, a stopped process and the
// pauses of the garbage collector.
type stallProbe struct {
	longest atomic.Int64 // nanoseconds, since it was last taken
	waits   *waits       // of a suite
}

// run probes until stop is closed.
func (p *stallProbe) run(stop <-chan struct{}) {
	timer := time.NewTimer(probeEvery)
	defer timer.Stop()
	if p.waits != nil {
		p.waits.begin(time.Now())
	}
	due := time.Now().Add(probeEvery)
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		late := now.Sub(due)
		if int64(late) > p.longest.Load() {
			p.longest.Store(int64(late))
		}
		if p.waits != nil {
			p.waits.note(now, late)
		}
		due = now.Add(probeEvery)
		timer.Reset(probeEvery)
	}
}

// take is the longest stall since the last call.
func (p *stallProbe) take() time.Duration { return time.Duration(p.longest.Swap(0)) }
