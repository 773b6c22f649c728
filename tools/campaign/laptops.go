package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// How k6 is run on two laptops that share a folder for their shards.
const (
	laptopsApart  = "each with a prefix of its own"
	laptopsAlike  = "both with one prefix"
	laptopsKilled = "one is killed"
)

// laptops makes a run of two k6 processes that know nothing of each other.
func laptops(then func(*rand.Rand, *scenario)) func(*rand.Rand, *scenario) {
	return func(r *rand.Rand, sc *scenario) {
		sc.Laptops = laptopsApart
		sc.Plan.Reconnect, sc.Plan.PerVU, sc.Plan.Runners = false, 1, 1
		sc.Plan.Connections = (sc.Plan.Connections + 1) / 2
		then(r, sc)
	}
}

// laptops runs them, and merges what they left.
func (r *run) laptops(ctx context.Context) (*judged, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Plan.Seconds)*time.Second+patience)
	defer cancel()
	shards := filepath.Join(r.dir, "laptops")
	if err := os.MkdirAll(shards, 0o755); err != nil {
		return nil, err
	}
	var both sync.WaitGroup
	for n := range 2 {
		both.Go(func() { _ = r.laptop(ctx, n, shards) }) // exits with 99 where a check failed
	}
	both.Wait()
	return r.merge(ctx, shards)
}

func (r *run) laptop(ctx context.Context, n int, shards string) error {
	prefix := r.Plan.Prefix
	if n == 1 && r.Laptops != laptopsAlike {
		prefix = "other-" + prefix
	}
	connections := itoa(r.Plan.Connections)
	cmd, text := r.command(ctx, "k6", "run", "--quiet", "--out", "soak="+shards,
		"--vus", connections, "--iterations", connections, "--duration", "60m",
		"--env", "BACKEND_URL="+r.url, "--env", fmt.Sprint("NOOP_INTERVAL=", r.Plan.Interval),
		"--env", fmt.Sprint("SECONDS=", r.Plan.Seconds), "--env", "PREFIX="+prefix, "--env", "LATE_MS="+itoa(r.Plan.LateMS),
		filepath.Join(r.root, "load-tests/sse/connectionTest.js"))
	if err := cmd.Start(); err != nil {
		return err
	}
	if n == 1 && r.Laptops == laptopsKilled {
		killing := time.AfterFunc(r.hold()*3/4, func() { _ = cmd.Process.Kill() })
		defer killing.Stop()
	}
	err := cmd.Wait()
	_ = os.WriteFile(filepath.Join(r.dir, fmt.Sprintf("k6-%d.txt", n)), text.Bytes(), 0o644)
	return err
}
