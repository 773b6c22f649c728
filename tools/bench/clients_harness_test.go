package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A client is a process that keeps streams open.
type client interface {
	pids() []int
	received() (n uint64, known bool) // known is false if the client reports the number only at its end
	end() (received, missed uint64)   // stops the client
}

// A runner is one k6 process.
type runner struct {
	*runners.Group
	b      testing.TB
	count  atomic.Uint64 // received messages in the last report
	shards string
	done   chan struct{} // closed when the process has ended
	stop   func()
}

// run starts k6 in the same way as a soak. change, unless nil, adapts the plan.
func (s service) run(script string, streams, perVU int, change func(*plan.Plan)) client {
	dir, prefix := folder(s.b)
	shards := filepath.Join(dir, "shards")
	require.NoError(s.b, os.MkdirAll(shards, 0o755))
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Runners = "bench", streams, perVU, 1
	p.Seconds, p.NoopInterval, p.BackendURL, p.Prefix = 12*3600, 1, s.URL, prefix
	if change != nil {
		change(&p)
	}
	env := map[string]string{"PUBLISH_TOKEN": s.Token, "K6_SUMMARY_MODE": "disabled", "K6_NO_THRESHOLDS": "true"}
	maps.Copy(env, s.env)
	r := &runner{b: s.b, shards: shards, done: make(chan struct{})}
	group, err := runners.Start(runners.Config{
		K6: "bin/k6", Script: script, Plan: p, Token: s.Token, Dir: dir, Env: env,
		OnReport: func(_ int, p *shard.Progress) {
			if p != nil {
				r.count.Store(p.Received)
			}
		},
	})
	require.NoError(s.b, err)
	ctx, stop := context.WithCancel(context.Background())
	r.Group, r.stop = group, stop
	go func() {
		_ = group.Wait(ctx, context.Background())
		close(r.done)
	}()
	s.b.Cleanup(func() {
		r.Kill()
		<-r.done
	})
	return r
}

// pids returns the process of the runner. A benchmark runs one runner at a time.
func (r *runner) pids() []int { return children(r.b, os.Getpid(), "k6") }

func (r *runner) received() (uint64, bool) { return r.count.Load(), true }

func (r *runner) end() (received, missed uint64) {
	r.stop()
	select {
	case <-r.done:
	case <-time.After(time.Minute):
		require.FailNow(r.b, "the runner did not end within a minute")
	}
	for c := range shardIn(r.b, r.shards).Records() {
		received += c.Received
		missed += c.Lost + c.Duplicated + c.Reordered + c.Corrupted // not by interval: a saturated runner may read late
	}
	return received, missed
}

// script runs a script of a suite to its end, and returns its shard.
func (s service) script(script string, p plan.Plan, env map[string]string, limit time.Duration) *shard.Shard {
	dir, _ := folder(s.b)
	maps.Copy(env, s.env)
	p.TestID, p.Runners, p.BackendURL = "bench", 1, s.URL
	group, err := runners.Start(runners.Config{K6: "bin/k6", Script: script, Plan: p, Dir: dir, Env: env, Settings: env})
	require.NoError(s.b, err)
	ctx, stop := context.WithTimeout(s.b.Context(), limit)
	defer stop()
	require.NoError(s.b, group.Wait(ctx, ctx))
	return shardIn(s.b, filepath.Join(dir, "shards"))
}

func shardIn(b testing.TB, dir string) *shard.Shard {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+shard.Suffix))
	require.NoError(b, err)
	require.Len(b, paths, 1, "shards in %s", dir)
	s, err := shard.ReadFile(paths[0])
	require.NoError(b, err)
	return s
}

// A bareClient is the program "hold" of bench.
type bareClient struct {
	*process.Process
	b      testing.TB
	output string
}

func (s service) startBare(streams int, epoll bool) client {
	_, prefix := folder(s.b)
	p, output := startProgram(s.b, "hold", holdOptions{Address: s.address(), Streams: streams, Prefix: prefix, Epoll: epoll})
	return &bareClient{p, s.b, output}
}

func (c *bareClient) pids() []int              { return []int{c.PID()} }
func (c *bareClient) received() (uint64, bool) { return 0, false }

func (c *bareClient) end() (received, missed uint64) {
	c.Stop(context.Background(), syscall.SIGTERM, 20*time.Second)
	r := awaitResult[holdResult](c.b, c.Process, c.output, time.Second)
	require.Empty(c.b, r.Errors, "connections failed")
	return r.Received, r.Missed
}
