package sse

import "context"

// dialGate bounds how many sources dial at a time: ten thousand at once would overflow the
// server's accept queue, and wait for each other until their time is up. One for the process.
type dialGate chan struct{}

var processDials = make(dialGate, 1000)

// enter waits for its turn until ctx ends.
func (g dialGate) enter(ctx context.Context) bool {
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil { // both at once
		g.leave()
		return false
	}
	return true
}

func (g dialGate) leave() { <-g }
