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
	usage     func() (services.Usage, error)
	quit      chan struct{}
	done      chan struct{}
	samples   []sample
	lastError error // the error of the last failed sample, for example after a crash of the service
}

func startSampler(usage func() (services.Usage, error)) *sampler {
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
			s.lastError = err
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
	IdleBytes   uint64  `json:"idle_bytes"`  // before the first stream
	MedianBytes uint64  `json:"held_bytes"`  // the median of the samples
	MaxBytes    uint64  `json:"most_bytes"`  // the largest
	CPUSeconds  float64 `json:"cpu_seconds"` // of the window
	WindowS     float64 `json:"window_s"`
	Load        float64 `json:"load"` // of the machine, mean
}

// costBetween returns the cost of a window of time.
func (s *sampler) costBetween(from, to time.Time) (c Cost, err error) {
	var window []sample
	for _, sample1 := range s.samples {
		if !sample1.at.Before(from) && !sample1.at.After(to) {
			window = append(window, sample1)
		}
	}
	if len(window) < 2 {
		return c, fmt.Errorf("%d samples of its memory and CPU in %.0f s: %w", len(window), to.Sub(from).Seconds(), s.lastError)
	}
	var memory []uint64
	for _, sample1 := range window {
		memory = append(memory, sample1.Memory)
		c.Load += sample1.load
	}
	c.Load /= float64(len(window))
	slices.Sort(memory)
	first, last := window[0], window[len(window)-1]
	c.MedianBytes, c.MaxBytes = memory[len(memory)/2], memory[len(memory)-1]
	c.CPUSeconds, c.WindowS = last.CPU-first.CPU, last.at.Sub(first.at).Seconds()
	return c, nil
}
