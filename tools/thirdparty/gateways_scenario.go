package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A scenario is a load on a gateway. Its results fill one scenarioRow.
type scenario struct {
	name     string
	chunks   int
	order    string // parameters of the numbered model other than id and chunks
	requests int    // number of requests; 0: the default of the benchmark
	behavior
	restart bool // restarts the gateway after half of the requests
}

// faultChunk is the number of the chunk at which a fault applies, or a client leaves or pauses.
const faultChunk = 20

// scenarios returns all scenarios in the order of the page. The first one has no fault.
func scenarios() []scenario {
	return []scenario{
		{name: "clean", chunks: 40, order: "delay=10ms"},
		{name: "upstream truncates", chunks: 40, order: fmt.Sprintf("delay=10ms fault=truncate@%d", faultChunk)},
		{name: "upstream resets", chunks: 40, order: fmt.Sprintf("delay=10ms fault=reset@%d", faultChunk)},
		{name: "error inside", chunks: 40, order: fmt.Sprintf("delay=10ms fault=error@%d", faultChunk)},
		{name: "client leaves", chunks: 400, order: "delay=10ms", behavior: behavior{leaveAfter: faultChunk}},
		{
			name: "slow client", chunks: 400, order: "delay=5ms size=4000", requests: 10,
			behavior: behavior{pauseAfter: faultChunk, pause: 5 * time.Second},
		},
		{name: "gateway restarted", chunks: 100, order: "delay=10ms", restart: true},
	}
}

// run sends the requests of a scenario at a constant rate, and waits until all have ended.
func (s scenario) run(ctx context.Context, b *gatewaysBench, c *client, restart func() error) (out []*response, err error) {
	n := s.requests
	if n == 0 {
		n = b.Requests
	}
	order := fmt.Sprintf("chunks=%d %s", s.chunks, s.order)
	out = make([]*response, n)
	var wait sync.WaitGroup
	start := time.Now()
	restarted := make(chan error, 1)
	for i := range n {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Until(start.Add(time.Duration(float64(i) / b.Rate * float64(time.Second))))):
		}
		if s.restart && i == n/2 {
			go func() { restarted <- restart() }()
		}
		wait.Go(func() {
			out[i] = c.do(ctx, fmt.Sprintf("%s-%d", b.runID, b.lastRequest.Add(1)), order, s.chunks, s.behavior)
		})
	}
	wait.Wait()
	if s.restart {
		err = <-restarted
	}
	return out, err
}

// memoryPerStream opens b.Streams streams at once, and returns the memory that the gateway uses per stream, in bytes.
func (b *gatewaysBench) memoryPerStream(ctx context.Context, c *client, g *gateway) (perStream float64, err error) {
	idle, err := g.usage()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait, open sync.WaitGroup
	open.Add(b.Streams)
	for i := range b.Streams {
		wait.Go(func() {
			once := sync.OnceFunc(open.Done)
			defer once()
			c.do(ctx, fmt.Sprintf("%s-open-%d", b.runID, i), "chunks=200 delay=500ms", 200, behavior{onFirst: once})
		})
	}
	open.Wait()
	time.Sleep(2 * time.Second)
	busy, err := g.usage()
	cancel()
	wait.Wait()
	return (float64(busy.Memory) - float64(idle.Memory)) / float64(b.Streams), err
}
