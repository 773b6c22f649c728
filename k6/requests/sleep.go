package requests

import (
	"context"
	"time"
)

// coarse is the maximum lateness of a timer: Go's wait for the network is in whole milliseconds.
const coarse = 2 * time.Millisecond

// sleep sleeps as exactly as the system can: the lateness of a request that starts late counts as the service's.
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
