package main

import (
	"context"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// runners returns the process ids of the runners that a soak process has started.
func runners(soak int) (pids []int) {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		if s, err := p.Stat(); err == nil && s.PPID == soak { // an error: the process has ended
			if line, err := p.CmdLine(); err == nil && slices.Contains(line, "--execution-segment") {
				pids = append(pids, p.PID)
			}
		}
	}
	return pids
}

// disturbPublisher sends a signal to the publisher, the first runner of a soak, after the first published message. A
// publisher stopped by SIGSTOP continues after Strike.Wait.
func disturbPublisher(signal syscall.Signal) func(context.Context, *run, int) {
	return func(ctx context.Context, r *run, soak int) {
		if !await(ctx, func() bool { return r.hub.publishCount() > 0 }) {
			return
		}
		pids := runners(soak)
		if len(pids) == 0 {
			return
		}
		_ = syscall.Kill(slices.Min(pids), signal)
		if signal == syscall.SIGSTOP {
			time.Sleep(r.Strike.Wait)
			_ = syscall.Kill(slices.Min(pids), syscall.SIGCONT)
		}
	}
}
