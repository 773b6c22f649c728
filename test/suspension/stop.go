//go:build unix

package suspension

import (
	"context"
	"syscall"
	"time"
)

// Stop stops processes for a duration, or until ctx ends. It calls wake before they continue.
func Stop(ctx context.Context, pids []int, d time.Duration, wake func()) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	wake()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}
