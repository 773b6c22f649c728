package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/tools/page"
)

// sampleInterval is the time between two samples. It is short compared with a run, and long compared with the few
// milliseconds that reading the memory of a large process takes.
const sampleInterval = time.Second

// A sample is the usage of a service and of the machine at one moment.
type sample struct {
	at time.Time
	services.Usage
	load float64 // load average of the machine in the last minute
}

// A sampler samples the usage of a service from startSampler until stop.
type sampler struct {
	usage     func() (services.Usage, error)
	quit      chan struct{}
	done      chan struct{}
	samples   []sample
	lastError error // the error of the last failed sample, for example after a crash of the service
}

// startSampler starts a sampler. The caller must call stop before it reads the samples.
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

func (s *sampler) stop() {
	close(s.quit)
	<-s.done
}

// A Cost is the usage of a service in a window of time in which its streams were open.
type Cost struct {
	IdleBytes   uint64  `json:"idle_bytes"`   // memory before the first stream
	MedianBytes uint64  `json:"median_bytes"` // median of the memory in the window
	MaxBytes    uint64  `json:"most_bytes"`   // maximum of the memory in the window
	CPUSeconds  float64 `json:"cpu_seconds"`  // CPU time in the window
	WindowS     float64 `json:"window_s"`     // duration of the window in seconds
	Load        float64 `json:"load"`         // mean load average of the machine
}

// costBetween returns the cost of a window of time, without IdleBytes. It returns an error for fewer than two samples.
func (s *sampler) costBetween(from, to time.Time) (c Cost, err error) {
	var window []sample
	for _, p := range s.samples {
		if !p.at.Before(from) && !p.at.After(to) {
			window = append(window, p)
		}
	}
	if len(window) < 2 {
		err := fmt.Errorf("measure the cost: only %s in %.0f s", format.Count(len(window), "sample"), to.Sub(from).Seconds())
		if s.lastError != nil {
			err = fmt.Errorf("%w: %w", err, s.lastError)
		}
		return c, err
	}
	var memory []uint64
	for _, p := range window {
		memory = append(memory, p.Memory)
		c.Load += p.load
	}
	c.Load /= float64(len(window))
	slices.Sort(memory)
	first, last := window[0], window[len(window)-1]
	c.MedianBytes, c.MaxBytes = memory[len(memory)/2], memory[len(memory)-1]
	c.CPUSeconds, c.WindowS = last.CPU-first.CPU, last.at.Sub(first.at).Seconds()
	return c, nil
}
