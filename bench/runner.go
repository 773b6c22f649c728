package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/child"
	"github.com/sse-soak/sse-soak/fleet"
	"github.com/sse-soak/sse-soak/plan"
	"github.com/sse-soak/sse-soak/shard"
)

// A runner is one k6 process that holds all connections.
type runner struct {
	process []int
	shard   string
	over    chan struct{}
	stop    func() // asks it to end
	die     func()
}

// startRunner starts k6 as a soak does, so that what a soak sets counts here too.
func (o *options) startRunner(s service, script string, connections, perVU int) (client, error) {
	dir, err := o.shardFolder()
	if err != nil {
		return nil, err
	}
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Runners = "bench", connections, perVU, 1
	p.Seconds, p.NoopInterval, p.BackendURL, p.Prefix = 7200, 1, s.URL, o.prefix()
	f, err := fleet.Start(fleet.Config{K6: filepath.Join(o.bin, "k6"), Script: script, Plan: p, Token: s.Token, Dir: dir})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &runner{process: f.PIDs(), shard: shardIn(dir), over: make(chan struct{}), stop: stop, die: f.Kill}
	go func() {
		f.Wait(ctx)
		close(r.over)
	}()
	return r, nil
}

// startProfiled starts k6 with its profiling endpoint on, for which fleet has no setting and
// k6 v2.2.0 no environment variable that works. One VU per connection, as a soak has by default.
func (o *options) startProfiled(s service, connections int, address string) (client, error) {
	dir, err := o.shardFolder()
	if err != nil {
		return nil, err
	}
	n := strconv.Itoa(connections)
	p, err := child.Start(child.Spec{
		Name: "runner", Path: filepath.Join(o.bin, "k6"), Log: filepath.Join(dir, "k6.log"), Orphan: syscall.SIGKILL,
		Args: []string{
			"run", "--quiet", "--no-color", "--address", address, "--profiling-enabled",
			"--out", "soak=" + filepath.Join(dir, "shards"), soakScript,
		},
		Env: append(os.Environ(), "K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false", "TESTID=bench",
			"BACKEND_URL="+s.URL, "BACKEND_TOKEN="+s.Token, "CONNECTIONS="+n, "CONNECTIONS_PER_VU=1", "SECONDS=7200",
			"NOOP_INTERVAL=1", "PREFIX="+o.prefix()),
	})
	if err != nil {
		return nil, err
	}
	r := &runner{process: []int{p.PID()}, shard: shardIn(dir), over: make(chan struct{})}
	r.stop = func() { p.Signal(syscall.SIGINT) }
	r.die = func() {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		p.Stop(gone, syscall.SIGKILL, time.Second)
	}
	go func() {
		<-p.Done()
		close(r.over)
	}()
	return r, nil
}

// shardFolder is a new folder for a runner's log and shard.
func (o *options) shardFolder() (string, error) {
	dir, err := o.folder("runner")
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(filepath.Join(dir, "shards"), 0o755)
}

func shardIn(dir string) string { return filepath.Join(dir, "shards", shard.FileName(1)) }

// prefix of the ids of the process whose folder was made last: no two clients share ids.
func (o *options) prefix() string { return fmt.Sprintf("bench-%d-", o.runs) }

func (r *runner) pids() []int           { return r.process }
func (r *runner) done() <-chan struct{} { return r.over }

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
	s, err := shard.ReadFile(r.shard)
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
