package soak

import (
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A pulse is the per-second samples of this process: CPU used, run-queue latency and stalls. Suites need
// them beside the buckets of 5 s, because a stage may be over in seconds.
type pulse struct {
	at       time.Time
	cpu      float64       // seconds, in all
	runDelay time.Duration // in all
	stall    time.Duration // longest since the last bucket of the series
	seconds  []shard.Second
}

// beat adds the sample since the last call. stall and wait are the longest ones in that time.
func (p *pulse) beat(now time.Time, s *sampler, stall, wait time.Duration) {
	p.stall = max(p.stall, stall)
	if s.self == nil {
		return
	}
	times, err := s.self.Times()
	if err != nil {
		return
	}
	cpu, delay := times.User+times.System, runDelay()
	if !p.at.IsZero() {
		p.seconds = append(p.seconds, shard.Second{
			FromUS: p.at.UnixMicro(), ToUS: now.UnixMicro(), CPUSeconds: cpu - p.cpu,
			RunDelayMS: max(delay-p.runDelay, 0).Milliseconds(), // a thread that ended takes its share with it
			StallMS:    stall.Milliseconds(), WaitMS: max(stall, wait).Milliseconds(),
		})
	}
	p.at, p.cpu, p.runDelay = now, cpu, delay
}

// takeStall is the longest stall since the last call.
func (p *pulse) takeStall() time.Duration {
	stall := p.stall
	p.stall = 0
	return stall
}
