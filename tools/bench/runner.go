package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A runner is one k6 process that holds all connections.
type runner struct {
	process []int
	shards  string
	over    chan struct{}
	group   *runners.Group
	stop    func() // asks it to end
	die     func()
}

// startRunner starts k6 as a soak does, so that what a soak sets counts here too.
func (o *options) startRunner(s service, script string, connections, perVU int) (*runner, error) {
	dir, err := o.folder("runner")
	if err != nil {
		return nil, err
	}
	shards := filepath.Join(dir, "shards")
	if err := os.MkdirAll(shards, 0o755); err != nil {
		return nil, err
	}
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Runners = "bench", connections, perVU, 1
	p.Seconds, p.NoopInterval, p.BackendURL, p.Prefix = 12*3600, 1, s.URL, o.prefix()
	f, err := runners.Start(runners.Config{K6: filepath.Join(o.bin, "k6"), Script: script, Plan: p, Token: s.Token, Dir: dir})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &runner{process: f.PIDs(), shards: shards, over: make(chan struct{}), group: f, stop: stop, die: f.Kill}
	go func() {
		f.Wait(ctx)
		close(r.over)
	}()
	return r, nil
}

// prefix of the ids of the process whose folder was made last: no two clients share ids.
func (o *options) prefix() string { return fmt.Sprintf("bench-%d-", o.runs) }

func (r *runner) pids() []int           { return r.process }
func (r *runner) done() <-chan struct{} { return r.over }

// has gives a machine that stood still ten seconds: what is on its way when a runner is stopped
// would be neither received nor missed.
func (r *runner) has(ctx context.Context, n uint64) error {
	for range 100 {
		if p, _ := r.group.Progress(); p.Received >= n {
			return nil
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil // account says what is missing
}

// shard is what the process left.
func (r *runner) shard() (*shard.Shard, error) {
	paths, err := filepath.Glob(filepath.Join(r.shards, "*"+shard.Suffix))
	if err != nil || len(paths) != 1 {
		return nil, errors.Join(fmt.Errorf("%d shards in %s instead of 1", len(paths), r.shards), err)
	}
	return shard.ReadFile(paths[0])
}

func (r *runner) kill() {
	r.die()
	<-r.over
}

func (r *runner) end(ctx context.Context) (received, missed uint64, err error) {
	r.stop()
	select {
	case <-r.over:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-time.After(time.Minute):
		return 0, 0, errors.New("the runner did not end within a minute of being asked to")
	}
	s, err := r.shard()
	if err != nil {
		return 0, 0, err
	}
	for _, c := range s.Connections {
		received += c.Received
		// By numbers alone: a starved runner's clock may doubt a noop that then came late.
		missed += c.Lost + c.Duplicated + c.Reordered + c.Corrupted
	}
	return received, missed, nil
}
