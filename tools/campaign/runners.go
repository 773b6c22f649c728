package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// laptops makes a run of two k6 processes that know nothing of each other.
func laptops(step prepare) prepare {
	return then(func(_ *rand.Rand, sc *scenario) {
		sc.Laptops, sc.Plan.Reconnect, sc.Plan.PerVU, sc.Plan.Runners = true, false, 1, 1
		sc.Plan.Connections = (sc.Plan.Connections + 1) / 2
	}, step)
}

// laptops runs k6 on two of them that share a folder for their shards, and merges what they left.
func (r *run) laptops(ctx context.Context) (*verdict.Verdict, error) {
	running, cancel := context.WithTimeout(ctx, time.Duration(r.Plan.Seconds)*time.Second+patience)
	defer cancel()
	shards := filepath.Join(r.dir, "laptops")
	if err := os.MkdirAll(shards, 0o755); err != nil {
		return nil, err
	}
	p, prefixes, during := &r.Plan, []string{r.Plan.Prefix, "other-" + r.Plan.Prefix}, []func(context.Context, *run, int){nil, r.disturb}
	if r.Alike {
		prefixes[1] = p.Prefix
	}
	var both sync.WaitGroup
	for n, prefix := range prefixes {
		both.Go(func() { // it exits with 99 where a check failed
			_, _ = r.exec(running, fmt.Sprintf("k6-%d", n), during[n], "k6", "run", "--quiet", "--out", "soak="+shards,
				"--vus", fmt.Sprint(p.Connections), "--iterations", fmt.Sprint(p.Connections), "--duration", "60m",
				"--env", "BACKEND_URL="+r.url, "--env", fmt.Sprint("NOOP_INTERVAL=", p.Interval),
				"--env", fmt.Sprint("SECONDS=", p.Seconds), "--env", "PREFIX="+prefix, "--env", fmt.Sprint("LATE_MS=", p.LateMS),
				filepath.Join(r.root, "load-tests/sse/connectionTest.js"))
		})
	}
	both.Wait()
	return r.merge(ctx, shards)
}

// killLaptop kills k6 before its streams end.
func killLaptop(ctx context.Context, r *run, k6 int) {
	if pause(ctx, r.Plan.hold()*3/4) {
		_ = syscall.Kill(k6, syscall.SIGKILL)
	}
}

// runnerFault does something to the soak or to its first runner, by their process ids, once all streams are open.
func runnerFault(want *expected, does func(r *run, soak, runner int)) prepare {
	return func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(8, 8)
		sc.Strike.Wait, sc.want = sc.intervals(r, 1.2, 2.7), want
		sc.disturb = func(ctx context.Context, r *run, soak int) {
			open := func() bool {
				opened, _ := r.service.Opened()
				return opened == r.Plan.Connections && len(runners(soak)) == r.Plan.Runners
			}
			if !await(ctx, open) || !pause(ctx, 2*r.Plan.interval()) {
				return
			}
			if pids := runners(soak); len(pids) > 0 {
				does(r, soak, pids[0])
			}
		}
	}
}

// runners are the k6 processes that this soak has started.
func runners(soak int) (pids []int) {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		if s, err := p.Stat(); err == nil && s.PPID == soak { // others end meanwhile
			if line, err := p.CmdLine(); err == nil && slices.Contains(line, "--execution-segment") {
				pids = append(pids, p.PID)
			}
		}
	}
	return pids
}

// publisherDisturbed sends a signal to the first runner of a soak, which publishes, while it does. One that was stopped goes
// on after Strike.Wait.
func publisherDisturbed(signal syscall.Signal) func(context.Context, *run, int) {
	return func(ctx context.Context, r *run, soak int) {
		if !await(ctx, func() bool { return r.hub.published() > 0 }) {
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
