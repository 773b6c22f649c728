package requests

import (
	"context"
	"time"
)

// coarse is how late a timer may be: Go's wait for the network at the same time, in whole milliseconds.
const coarse = 2 * time.Millisecond

// sleep waits as exactly as the system does: the lateness of a request that is begun late counts as its service's.
func sleep(ctx context.Context, d time.Duration) {
	end := time.Now().Add(d)
	if d > coarse {
		timer := time.NewTimer(d - coarse)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	if rest := time.Until(end); rest > 0 {
		nap(rest)
	}
}
