package sse

import "context"

// dialGate bounds how many sources dial at a time: ten thousand at once would overflow the
// server's accept queue, and wait for each other until their time is up. One for the process.
type dialGate chan struct{}

var processDials = make(dialGate, 1000)

// enter waits for a place until ctx ends.
func (g dialGate) enter(ctx context.Context) bool {
	select {
	case g <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g dialGate) leave() { <-g }
