package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/process"
	"github.com/sse-soak/sse-soak/internal/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A client is processes that hold connections: a runner or raw clients.
type client interface {
	pids() []int
	// done is closed when it has ended, which it should not while it is measured.
	done() <-chan struct{}
	// has waits until it received n noops, as far as it tells before its end.
	has(n uint64)
	// end ends it in order and says what it received and missed.
	end() (received, missed uint64)
	// kill ends it at once; after end it does nothing.
	kill()
}

// hold waits until the client holds n connections and has settled.
func (s service) hold(c client, n int, settle time.Duration) {
	s.await(n, c.done())
	s.sleep(settle)
}

// A cost is what processes took in a window.
type cost struct {
	rss      float64 // bytes: median of a sample each half second
	peak     float64 // bytes: the most until the end of it, the ramp included
	seconds  float64 // of CPU
	noops    uint64  // sent in it
	from, to counts
}

// tick is the CPU time that /proc can tell from none.
const tick = .01

func (c cost) per(noops float64) float64 { return c.seconds / float64(c.noops) * noops }

// steady measures processes while whole rounds of noops go through them.
func (s service) steady(pids []int, window time.Duration) (c cost) {
	c.from = s.quiet()
	before := sum(pids, cpuOf)
	var rss []float64
	for began := time.Now(); time.Since(began) < window.Truncate(time.Second); s.sleep(500 * time.Millisecond) {
		rss = append(rss, sum(pids, rssOf))
	}
	c.to = s.quiet()
	c.peak = sum(pids, peakOf)
	c.rss, c.seconds, c.noops = median(rss), max(sum(pids, cpuOf)-before, tick), c.to.noops-c.from.noops
	return c
}

// errUnaccounted: a client that did less than all of the work has no result.
var errUnaccounted = errors.New("there is no result for that")

// finish ends the client and compares what it received with what the backend sent it since before:
// all that was sent before the client was asked to end, and nothing that was not sent. It is to be
// called in the pause after a round of noops: none may be on its way.
func (s service) finish(c client, before counts) (received uint64) {
	least := s.counts().noops - before.noops
	c.has(least)
	received, missed := c.end()
	s.await(0, nil)
	most := s.counts().noops - before.noops
	if received < least || received > most || missed > 0 {
		check(fmt.Errorf("%d to %d noops were sent, %d received and %d missed or faulty: %w", least, most, received, missed, errUnaccounted))
	}
	return received
}

// prefix of the ids of the process whose folder was made last: no two clients share ids.
func (b *bench) prefix() string { return fmt.Sprintf("bench-%d-", b.started) }

// A runner is one k6 process that holds all connections.
type runner struct {
	*bench
	*runners.Group
	shards string
	over   chan struct{}
	stop   func() // asks it to end
}

// startRunner starts k6 as a soak does, so that what a soak sets counts here too.
func (s service) startRunner(script string, connections, perVU int) *runner {
	return s.startSoak(script, connections, perVU, nothing)
}

func (s service) startSoak(script string, connections, perVU int, change func(*plan.Plan)) *runner {
	dir := s.folder("runner")
	shards := filepath.Join(dir, "shards")
	check(os.MkdirAll(shards, 0o755))
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Runners = "bench", connections, perVU, 1
	p.Seconds, p.NoopInterval, p.BackendURL, p.Prefix = 12*3600, 1, s.URL, s.prefix()
	change(&p)
	env := map[string]string{"PUBLISH_TOKEN": s.Token}
	maps.Copy(env, s.env)
	group := must(runners.Start(runners.Config{K6: "bin/k6", Script: script, Plan: p, Token: s.Token, Dir: dir, Env: env}))
	ctx, stop := context.WithCancel(context.Background())
	r := &runner{s.bench, group, shards, make(chan struct{}), stop}
	go func() {
		_ = group.Wait(ctx, context.Background()) // processes of this machine are not lost sight of
		close(r.over)
	}()
	return r
}

func (r *runner) pids() []int           { return r.PIDs() }
func (r *runner) done() <-chan struct{} { return r.over }

// has gives a machine that stalled ten seconds: what is on its way when a runner is stopped
// would be neither received nor missed. finish says what is missing.
func (r *runner) has(n uint64) {
	for range 100 {
		if p, _ := r.Progress(); p.Received >= n {
			return
		}
		r.sleep(100 * time.Millisecond)
	}
}

// shard is what the process left.
func (r *runner) shard() *shard.Shard {
	paths := must(filepath.Glob(filepath.Join(r.shards, "*"+shard.Suffix)))
	if len(paths) != 1 {
		check(fmt.Errorf("%d shards in %s instead of 1", len(paths), r.shards))
	}
	return must(shard.ReadFile(paths[0]))
}

func (r *runner) kill() {
	r.Kill()
	<-r.over
}

func (r *runner) end() (received, missed uint64) {
	r.stop()
	select {
	case <-r.over:
	case <-r.ctx.Done():
		check(r.ctx.Err())
	case <-time.After(time.Minute):
		check(errors.New("the runner did not end within a minute of being asked to"))
	}
	for c := range r.shard().Records() {
		received += c.Received
		// By numbers alone: a saturated runner's clock may doubt a noop that then came late.
		missed += c.Lost + c.Duplicated + c.Reordered + c.Corrupted
	}
	return received, missed
}

// A rawClient is a process that holds connections with as little as possible.
type rawClient struct {
	*bench
	*process.Process
	log string
}

func (s service) startRaw(o rawOptions) *rawClient {
	log := filepath.Join(s.folder("raw"), "out.json")
	o.Address, o.Prefix = must(url.Parse(s.URL)).Host, s.prefix()
	return &rawClient{s.bench, must(process.Start(process.Spec{
		Name: "raw client", Path: must(os.Executable()), Args: []string{"raw-client", string(must(json.Marshal(o)))}, Env: os.Environ(), Log: log, Orphan: syscall.SIGKILL,
	})), log}
}

func (c *rawClient) pids() []int           { return []int{c.PID()} }
func (c *rawClient) done() <-chan struct{} { return c.Done() }
func (c *rawClient) has(uint64)            {} // it tells at its end
func (c *rawClient) kill()                 { c.Stop(c.ctx, syscall.SIGKILL, time.Second) }

func (c *rawClient) end() (received, missed uint64) {
	r := c.result()
	if len(r.Errors) > 0 {
		check(fmt.Errorf("connections of the raw client failed: %v", r.Errors))
	}
	return r.Received, r.Missed
}

func (c *rawClient) result() (r rawResult) {
	c.Stop(c.ctx, syscall.SIGTERM, 20*time.Second)
	check(json.Unmarshal(must(os.ReadFile(c.log)), &r))
	return r
}
