package soak

import (
	"context"
	"errors"
	"os"
	"sync"
)

// A startGate is the pipe that all runners of a machine inherit (see internal/run/runners). The phases of a suite begin
// when all of these runners are ready for them. Otherwise their clients would disconnect at different times.
type startGate struct {
	start, ready *os.File // reading end and writing end
	once         sync.Once
	open         chan struct{}
}

// newStartGate returns the gate with the descriptors in START_FD and READY_FD; nil if a variable is not set.
func newStartGate(env map[string]string) (*startGate, error) {
	start, startErr := inheritedFile(env, "START_FD")
	ready, readyErr := inheritedFile(env, "READY_FD")
	if start == nil || ready == nil {
		return nil, errors.Join(startErr, readyErr)
	}
	return &startGate{start: start, ready: ready, open: make(chan struct{})}, nil
}

// wait returns when every runner has called wait or has ended, or when ctx ends. On a nil gate it returns at once.
func (g *startGate) wait(ctx context.Context) {
	if g == nil {
		return
	}
	g.once.Do(func() {
		_ = g.ready.Close()
		go func() { // ends at the latest when the other runners end
			_, _ = g.start.Read(make([]byte, 1)) // no runner writes, so Read returns when all writing ends are closed
			_ = g.start.Close()
			close(g.open)
		}()
	})
	select {
	case <-g.open:
	case <-ctx.Done():
	}
}
