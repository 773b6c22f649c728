package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// What happens to the runners of a soak.
const (
	runnerKilled  = "kill -9"
	runnerStopped = "SIGSTOP, then SIGCONT"
	runnerCtrlC   = "Ctrl-C"
)

func runnerFault(what string) func(*rand.Rand, *scenario) {
	return func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(8, 8)
		sc.Runner = what
		switch want := passes(); what {
		case runnerKilled:
			want = invalid("killed")
			sc.want = &want
		case runnerCtrlC:
			want = invalid("stopped by a signal")
			sc.want = &want
		case runnerStopped: // it reads everything afterwards: late, not lost
			sc.Wait = time.Duration((1.2 + 1.5*r.Float64()) * float64(sc.Plan.interval()))
			sc.want = &want
		}
	}
}

// disturb does to a runner of the soak with that process id what the scenario says, once its
// streams are open.
func (sc *scenario) disturb(ctx context.Context, soak int, opened func() bool) {
	if sc.Runner == "" || !await(ctx, func() bool { return opened() && len(runners(soak)) == sc.Plan.Runners }) {
		return
	}
	if !pause(ctx, 2*sc.Plan.interval()) {
		return
	}
	pids := runners(soak)
	if len(pids) == 0 {
		return
	}
	pid := pids[0]
	switch sc.Runner {
	case runnerKilled:
		_ = syscall.Kill(pid, syscall.SIGKILL)
	case runnerCtrlC:
		_ = syscall.Kill(soak, syscall.SIGINT)
	case runnerStopped:
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		pause(ctx, sc.Wait)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func await(ctx context.Context, done func() bool) bool {
	for !done() {
		if !pause(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return true
}

// runners are the k6 processes that this soak has started.
func runners(soak int) (pids []int) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(soak) + "/task/*/children")
	for _, path := range tasks {
		children, _ := os.ReadFile(path)
		for _, child := range strings.Fields(string(children)) {
			line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if pid, _ := strconv.Atoi(child); err == nil && pid > 0 && strings.Contains(string(line), "--execution-segment") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
