package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Kubernetes has the settings for runners on Kubernetes.
type Kubernetes struct {
	Namespace    string        // of a run to attach to
	Via          string        // HOST or HOST:PORT at which this machine reaches the service; "": at its URL
	Context      string        // name of a context of the kubeconfig; "": the current context
	StartTimeout time.Duration // for each Deployment of the overlay, and for each of initializer, runners and starter
	Keep         bool          // leave TestRun and pods in the cluster
}

// A kubernetes driver runs the runners under the k6-operator. On close it removes the run from the cluster. It leaves a
// run that the user keeps, or that continues after a lost connection.
type kubernetes struct {
	*session
	client         *cluster.Client
	manifests      *cluster.Manifests // nil: the TestRun exists already
	module         string             // source of a description that is a file of the user; "": the image has the description
	remoteWrite    map[string]string  // k6's variables for the Prometheus that the runners write to; nil: none
	namespace      string
	backend        *corev1.Pod   // the target's pod before the load, nil if it is not in the cluster
	pollInterval   time.Duration // between two polls of the cluster; 0: the default
	reachable      bool          // the target answered this machine before the run
	created        bool          // start has created the TestRun, or it existed already
	startReference bool          // start creates the reference server of the control group
	connectionLost bool
	closers        []func()
}

// newKubernetes returns a UsageError for settings that Kubernetes does not support.
func newKubernetes(s *session) (*kubernetes, error) {
	err := cluster.CheckTestID(s.Plan.TestID)
	switch {
	case s.runnerNumber > 0 || !s.startAt.IsZero():
		err = errors.New("--runner and --start-at cannot be combined with --on k8s: the operator starts all runners together")
	case s.Script != "":
		err = errors.New("--script cannot be combined with --on k8s; set spec.script of the overlay")
	case s.setting("PROMPTS", "") != "":
		err = fmt.Errorf("PROMPTS must be empty for pods, which do not have that file, got %q; put the prompts into body(n) of the module of the service", s.setting("PROMPTS", ""))
	case s.Suite.Target.Kind == suite.Model && s.Plan.BackendURL == "":
		err = fmt.Errorf("%s on Kubernetes requires BACKEND_URL: no model is started there", s.Suite.Name)
	case s.Suite.Runners.NoKubernetes != "":
		err = fmt.Errorf("%s does not run on Kubernetes: %s", s.Suite.Name, s.Suite.Runners.NoKubernetes)
	case s.Suite.Target.Kind == suite.Cluster && (s.ClusterURL == "" || s.Plan.BackendURL == ""):
		err = fmt.Errorf("%s on Kubernetes requires BACKEND_URL and CLUSTER_URL: neither is started there", s.Suite.Name)
	}
	if err != nil {
		return nil, UsageError{err}
	}
	return &kubernetes{session: s}, nil
}

func (d *kubernetes) check(ctx context.Context) (err error) {
	if d.remoteWrite, err = runners.RemoteWriteSettings(); err != nil {
		return UsageError{err}
	}
	if d.manifests, err = buildOverlay(d.Overlay); err != nil {
		return err
	}
	if d.Suite.Declares() || d.isModule { // this machine loads the script before pods exist
		if err := d.findScript(); err != nil {
			return err
		}
	}
	if err := d.inspect(ctx); err != nil {
		return err
	}
	return d.connect()
}

func (d *kubernetes) connect() (err error) {
	if d.client == nil {
		d.client, err = cluster.Connect(d.Kubernetes.Context)
	}
	return err
}

func (d *kubernetes) start(ctx context.Context, r round) (roundRun, error) {
	if d.manifests != nil {
		tokens := d.tokens(d.targets[0].Token)
		maps.Copy(tokens, d.remoteWrite)
		launch := cluster.Launch{Document: d.document(r.settings), Shards: r.shards, Secrets: tokens, Module: d.module, RemoteWrite: d.remoteWrite != nil, Env: d.environment(), Length: d.needs.Duration}
		if d.Suite.Plan.Profiles != nil { // the suite has its own script
			launch.Script = d.Suite.Script
		}
		if !d.Suite.Plan.BySettings {
			launch.Script, launch.Memory = d.Suite.Script, preflight.Users{VUs: (d.needs.VUs-1)/d.Plan.Runners + 1, Runners: 1, Connections: (d.needs.Connections-1)/d.Plan.Runners + 1}.Memory()
		}
		if err := d.manifests.Render(launch); err != nil {
			return nil, err
		}
		if err := d.client.Create(ctx, d.manifests.TestRun, launch); err != nil {
			return nil, err
		}
		d.createControl(ctx)
		if d.Live == "" {
			d.report("the runners write their shards to the bucket; watch the run: " + liveCommand(d.location))
		}
	}
	d.created = true
	limits := cluster.DefaultLimits(d.needs.Duration)
	limits.ExplicitStart = d.Kubernetes.StartTimeout != limits.Start
	limits.Start, limits.PollInterval = d.Kubernetes.StartTimeout, cmp.Or(d.pollInterval, limits.PollInterval)
	run := cluster.Follow(d.client, d.namespace, d.Plan, limits, string(r.dir))
	result := &followedRun{Run: run, driver: d}
	if d.Suite.Target.Streams {
		run.OnReport = d.watch.Add
	} else {
		open := func(ctx context.Context) (store.Store, error) { return d.openShards(ctx, r.shards) }
		result.checkpoints = &checkpoints{open: open, onReport: d.watch.Add, poll: cmp.Or(d.pollInterval, checkpointPoll), lastUnix: map[int]int64{}}
	}
	return result, nil
}

// A followedRun is a run in the cluster. It continues there if this machine loses the connection.
type followedRun struct {
	*cluster.Run
	driver      *kubernetes
	checkpoints *checkpoints // nil: k6's REST API has the progress
}

// stopGrace limits the time in which runners must end after an interrupt.
const stopGrace = 90 * time.Second

func (f *followedRun) Wait(graceful, force context.Context) error {
	defer f.Close()
	if f.checkpoints != nil {
		readCtx, stop := context.WithCancel(force)
		var reader sync.WaitGroup
		reader.Go(func() { f.checkpoints.follow(readCtx) })
		defer reader.Wait()
		defer stop()
	}
	d := f.driver
	err := f.Run.Wait(graceful, d.report)
	if errors.Is(err, cluster.ErrUnreachable) {
		d.connectionLost = true
		return fmt.Errorf("%w, but the run continues in the cluster; follow it with `soak attach %s`", err, d.Plan.TestID)
	}
	if phase := f.Phase(); graceful.Err() == nil || phase != cluster.Running {
		return nil
	}
	ctx, cancel := context.WithTimeout(force, stopGrace)
	defer cancel()
	if err = f.Stop(ctx); err != nil {
		d.warn(err.Error()) // the shards of the runners are collected in any case
	} else if err = f.Run.Wait(ctx, d.report); err != nil && force.Err() == nil {
		d.warn(fmt.Sprintf("some runners did not end within %s of the request to stop", stopGrace))
	}
	return nil
}

// targetState opens a new connection to the target, because the failure of an older connection may not be the target's
// fault.
func (d *kubernetes) targetState(ctx context.Context) (failures []verdict.TargetFailure, unreachable []string) {
	if d.backend != nil {
		if text, at := d.client.Restarts(ctx, d.backend); text != "" {
			failures = append(failures, verdict.TargetFailureAt(at, text))
		}
	}
	waitCtx, cancel := context.WithTimeout(ctx, target.ReadyTimeout)
	defer cancel()
	err := d.reachTarget(ctx)
	var unready cluster.NotReadyError
	for errors.As(err, &unready) && waitCtx.Err() == nil {
		select {
		case <-waitCtx.Done():
		case <-time.After(time.Second):
			err = d.reachTarget(ctx)
		}
	}
	switch {
	case errors.As(err, &unready) && ctx.Err() == nil:
		unreachable = append(unreachable, err.Error())
	case err != nil:
		d.warn(err.Error())
	case d.reachable:
		if err := d.targets.Ready(ctx); err != nil && ctx.Err() == nil {
			unreachable = append(unreachable, err.Error())
		}
	}
	return failures, unreachable
}

func (d *kubernetes) judge(context.Context, context.Context) (verdict.Outcome, error) {
	return d.conclude()
}

// close closes the forwarded ports, and removes the run from the cluster. It does not remove a run that the user keeps
// or that continues without a connection.
func (d *kubernetes) close(context.Context) {
	for _, c := range slices.Backward(d.closers) {
		c()
	}
	switch {
	case !d.created || d.connectionLost:
		return
	case d.Kubernetes.Keep:
		d.report(fmt.Sprintf("kept: kubectl get testrun,job,pod -n %s -l k6_cr=%s", d.namespace, cluster.Name(d.Plan.TestID)))
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.client.Delete(ctx, d.namespace, cluster.Name(d.Plan.TestID)); err != nil {
		printMessage("warning: " + err.Error())
	}
}

func (d *kubernetes) report(news string) {
	fmt.Fprintln(stderr, time.Now().UTC().Format(time.TimeOnly), news)
}

const checkpointPoll = 10 * time.Second

// checkpoints reads the progress of an HTTP suite or of the suite finite from the checkpoints in the bucket. Runners of
// such a suite aggregate no metrics for k6's REST API. The progress is for display; no verdict depends on it.
type checkpoints struct {
	open     func(ctx context.Context) (store.Store, error)
	onReport func(index int, p *shard.Progress)
	poll     time.Duration
	lastUnix map[int]int64 // time of the last reported shard.ResponseBucket, by runner
}

// follow reads the checkpoints until ctx ends. It reads for less than 1/pauseFactor of the time.
func (c *checkpoints) follow(ctx context.Context) {
	var source store.Store
	interval := c.poll
	for {
		select {
		case <-ctx.Done():
			if source != nil {
				_ = source.Close()
			}
			return
		case <-time.After(interval):
		}
		start := time.Now()
		if source == nil {
			source, _ = c.open(ctx) // nil: the next attempt may succeed
		}
		if source != nil && c.read(ctx, source) != nil {
			_ = source.Close()
			source = nil
		}
		interval = max(c.poll, pauseFactor*time.Since(start))
	}
}

func (c *checkpoints) read(ctx context.Context, source store.Store) error {
	return eachShard(ctx, source, 0, func(_ string, s *shard.Shard) { c.report(s.Runner.Index, s.RequestProgress()) })
}

// report calls onReport with the progress of a runner, without the buckets that are complete and already reported.
func (c *checkpoints) report(index int, p shard.Progress) {
	p.Responses = slices.DeleteFunc(p.Responses, func(b shard.ResponseBucket) bool { return b.Unix < c.lastUnix[index] })
	if n := len(p.Responses); n > 0 {
		c.lastUnix[index] = p.Responses[n-1].Unix
	}
	c.onReport(index, &p)
}
