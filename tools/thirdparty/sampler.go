package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/tools/page"
)

// sampleInterval is short compared with a run, and long compared with the milliseconds that reading the memory of a
// large process needs.
const sampleInterval = time.Second

// A sample is the usage of a service at a time.
type sample struct {
	at time.Time
	services.Usage
	load float64 // of the machine: running and runnable processes, over the last minute
}

// A sampler measures a service from start to stop.
type sampler struct {
	usage   func() (services.Usage, error)
	quit    chan struct{}
	done    chan struct{}
	samples []sample
	failed  error // the error of the last failed sample: it shows that a service crashed
}

func watch(usage func() (services.Usage, error)) *sampler {
	s := &sampler{usage: usage, quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *sampler) run() {
	defer close(s.done)
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	for {
		if u, err := s.usage(); err != nil {
			s.failed = err
		} else {
			s.samples = append(s.samples, sample{time.Now(), u, page.LoadAverage()})
		}
		select {
		case <-s.quit:
			return
		case <-tick.C:
		}
	}
}

// stop ends the sampler. No goroutine uses its samples afterwards.
func (s *sampler) stop() {
	close(s.quit)
	<-s.done
}

// A Cost is the usage of a service while its streams were open.
type Cost struct {
	IdleBytes  uint64  `json:"idle_bytes"`  // before the first stream
	HeldBytes  uint64  `json:"held_bytes"`  // the median of the samples
	MostBytes  uint64  `json:"most_bytes"`  // the largest
	CPUSeconds float64 `json:"cpu_seconds"` // of the window
	WindowS    float64 `json:"window_s"`
	Load       float64 `json:"load"` // of the machine, mean
}

// costBetween returns the cost of a window of time.
func (s *sampler) costBetween(from, to time.Time) (c Cost, err error) {
	var in []sample
	for _, one := range s.samples {
		if !one.at.Before(from) && !one.at.After(to) {
			in = append(in, one)
		}
	}
	if len(in) < 2 {
		return c, fmt.Errorf("%d samples of its memory and CPU in %.0f s: %w", len(in), to.Sub(from).Seconds(), s.failed)
	}
	var memory []uint64
	for _, one := range in {
		memory = append(memory, one.Memory)
		c.Load += one.load
	}
	c.Load /= float64(len(in))
	slices.Sort(memory)
	first, last := in[0], in[len(in)-1]
	c.HeldBytes, c.MostBytes = memory[len(memory)/2], memory[len(memory)-1]
	c.CPUSeconds, c.WindowS = last.CPU-first.CPU, last.at.Sub(first.at).Seconds()
	return c, nil
}
