package requests

import (
	"context"
	"time"
)

// timerLateness is the maximum lateness of a timer. Go's runtime waits in whole milliseconds.
const timerLateness = 2 * time.Millisecond

// sleep sleeps as exactly as the system can, because the delay of a late request would be attributed to the service.
func sleep(ctx context.Context, d time.Duration) {
	end := time.Now().Add(d)
	if d > timerLateness {
		timer := time.NewTimer(d - timerLateness)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	if remaining := time.Until(end); remaining > 0 {
		nap(remaining)
	}
}
