package run

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A local driver runs the runners as processes on this machine, and also the target, unless the target runs elsewhere.
type local struct {
	*session
	targetCPUs, runnerCPUs process.CPUList  // reserved CPUs; empty: all
	control                *process.Process // process of the control group's reference server; nil: not on this machine
}

// Settings of a target that starts before the script of the suite declares the streams.
const (
	unplannedConnections = 8192
	unplannedInterval    = 15 * time.Second
)

// check loads the script, and records the limits of this machine and the proxies of the runners. It returns an error for
// limits that would break the run, and adds warnings for other limits.
func (d *local) check(ctx context.Context) error {
	if err := d.findScript(); err != nil {
		return err
	}
	if err := d.inspect(ctx); err != nil {
		return err
	}
	d.record.Limits = preflight.Read()
	var errs []error
	var sentences, warnings []string
	if d.Suite.Plan.BySettings {
		sentences, warnings = preflight.Check(d.localPlan(), d.record.Limits, d.services())
	} else {
		sentences, warnings = d.users().Check(d.record.Limits)
	}
	for _, sentence := range sentences {
		errs = append(errs, errors.New(sentence))
	}
	if d.Plan.BackendURL == "" {
		errs = append(errs, d.targetConfig().Check())
	}
	errs = append(errs, d.findProxies())
	if ignored := runners.IgnoredVariables(); ignored != "" {
		warnings = append(warnings, ignored)
	}
	for _, w := range warnings {
		d.warn(w)
	}
	return errors.Join(errs...)
}

func (d *local) services() preflight.Services {
	if d.Plan.BackendURL == "" {
		return preflight.Services{Count: d.Backends, Local: true, Proxied: !d.NoNginx}
	}
	return preflight.Services{Count: min(len(d.Plan.BackendURLs()), d.localPlan().Runners)}
}

func (d *local) users() preflight.Users {
	share := func(total int) int { return (total*d.localPlan().Runners + d.Plan.Runners - 1) / d.Plan.Runners }
	u := preflight.Users{VUs: share(d.needs.VUs), Runners: d.localPlan().Runners, Connections: share(d.needs.Connections), Sources: 1, Local: d.Plan.BackendURL == "", Handshakes: d.Suite.Target.Kind == suite.MutualTLS}
	u.Proxied = u.Local && !d.NoNginx && d.Suite.Target.Kind != suite.MutualTLS
	switch {
	case u.Local && d.Suite.Target.Kind == suite.MutualTLS:
		u.Sources = target.Sources(u.VUs / u.Runners)
	case os.Getenv("K6_LOCAL_IPS") != "":
		u.Sources = 0
	}
	return u
}

func (d *local) prepare(ctx context.Context) error {
	d.managesTarget = d.Plan.BackendURL == ""
	d.pin()
	if err := d.createFolder(ctx); err != nil {
		return err
	}
	if err := d.openTargets(ctx); err != nil {
		return err
	}
	d.serveControl()
	return nil
}

// createFolder creates the folder of the run with its manifest. With --shards, it first claims the location of the
// shards. Without --shards, it generates another test id if another run has the generated one.
func (d *local) createFolder(ctx context.Context) (err error) {
	if d.Shards != "" {
		d.location = store.Join(d.Shards, d.Plan.TestID)
		if err := d.claim(ctx, true); err != nil {
			return err
		}
	}
	if d.Continue {
		d.dir, err = results.Rejoin(d.Out, d.Plan.TestID)
	} else if d.runnerNumber > 0 {
		d.dir, err = results.Join(d.Out, d.Plan.TestID, d.runnerNumber)
	} else {
		d.dir, err = results.Create(d.Out, d.Plan.TestID)
		for d.generatedID && d.Shards == "" && errors.Is(err, fs.ErrExist) { // another run started in the same second
			d.Plan.TestID = results.NewTestID(d.Out, time.Now())
			if d.Plan.Marker != "" {
				d.setMarker()
			}
			d.dir, err = results.Create(d.Out, d.Plan.TestID)
			printMessage("another run has the same test id; this run is " + d.Plan.TestID)
		}
	}
	if err != nil {
		return err
	}
	d.location = cmp.Or(d.location, d.dir.Path(results.ShardsDir))
	return d.dir.WriteManifest(d.runnerNumber, d.manifest())
}

func (d *local) targetConfig() target.LocalConfig {
	config := target.LocalConfig{
		Connections: unplannedConnections, NoopInterval: cmp.Or(d.interval, unplannedInterval),
		PlainConnections: d.needs.Connections, LogDir: string(d.dir), NoNginx: d.NoNginx, RequireHTTP2: d.Plan.HTTPVersion == plan.HTTP2,
		Certificates: d.certificates, CPUs: d.targetCPUs, Model: d.Suite.Target.Kind == suite.Model,
	}
	if d.Suite.Plan.BySettings {
		config.Connections = d.Plan.PerBackend(d.Backends)
	}
	return config
}

// openTargets starts the targets of this machine, and waits until all targets answer. It sets the URL of the target,
// and the URL of the cluster that the suite compares with the target.
func (d *local) openTargets(ctx context.Context) (err error) {
	config := d.targetConfig()
	var urls []string
	if !d.managesTarget {
		urls = d.Plan.BackendURLs()
	}
	if d.targets, err = d.openTarget(ctx, config, urls, d.Backends); err != nil {
		return err
	}
	d.Plan.BackendURL = d.targets.URL()
	d.record.OneClock, d.record.Nginx = d.managesTarget, d.targets.Nginx()
	if d.Suite.Target.Kind != suite.Cluster {
		return nil
	}
	config.Backends, config.Suffix, urls = d.clusterSize, "-cluster", nil
	if d.ClusterURL != "" {
		urls = []string{d.ClusterURL}
	}
	clusters, err := d.openTarget(ctx, config, urls, 1)
	if err != nil {
		return err
	}
	d.cluster, d.ClusterURL = clusters[0], clusters.URL()
	return nil
}

// openTarget returns the targets at urls or, if urls is empty, starts count targets here.
func (d *local) openTarget(ctx context.Context, config target.LocalConfig, urls []string, count int) (targets target.Targets, err error) {
	if len(urls) == 0 {
		if config.Backend, err = Program("backend"); err != nil {
			return nil, err
		}
		return target.StartLocals(ctx, config, count)
	}
	if targets, err = target.Remotes(urls, os.Getenv("BACKEND_TOKEN"), d.certificates); err != nil {
		return nil, err
	}
	return targets, targets.Probe(ctx, d.interval)
}

func (d *local) start(_ context.Context, r round) (roundRun, error) {
	config := d.runnerConfig(r)
	config.Survive = d.runnersSurvive()
	return runners.Start(config)
}

func (d *local) runnerConfig(r round) runners.Config {
	env := d.environment()
	if d.certificates != "" {
		maps.Copy(env, d.targets[0].RunnerEnv(d.certificates))
	}
	return runners.Config{
		Document: d.document(r.settings), K6: d.k6, Script: d.script, Index: d.runnerNumber, Token: d.targets[0].Token,
		Dir: string(r.dir), Shards: r.shards, Env: env, OnRetry: printMessage, OnReport: d.watch.Add, CPUs: d.runnerCPUs,
	}
}

func (d *local) openShards(ctx context.Context, location string) (store.Store, error) {
	return store.Open(ctx, location)
}

func (d *local) targetState(ctx context.Context) (failures []verdict.TargetFailure, unreachable []string) {
	targets := d.allTargets()
	switch err := targets.Ready(ctx); {
	case err == nil || ctx.Err() != nil:
	case http1.IsExhausted(err): // closed streams keep their local ports for a minute
		d.warn(err.Error())
	default:
		unreachable = append(unreachable, err.Error())
	}
	for _, c := range targets.Crashes() {
		failures = append(failures, verdict.TargetFailureAt(c.At, c.Text))
	}
	return failures, unreachable
}

// judge makes the verdict, or ends this machine's part of a run. With --shards, if all shards were fetched to the folder
// of the run, judge also copies the manifest and the evidence of this machine to the location of the shards. If that
// copy fails, judge prints a warning and returns the verdict.
func (d *local) judge(graceful, force context.Context) (verdict.Outcome, error) {
	if d.runnerNumber > 0 {
		return d.finishPart(graceful, force)
	}
	outcome, err := d.conclude()
	if err != nil || !d.hasShards {
		return outcome, err
	}
	if err := d.deliver(graceful, force); err != nil {
		printMessage("warning: " + err.Error())
	}
	return outcome, nil
}

func (d *local) close(force context.Context) {
	d.stopControl(force)
	d.allTargets().Stop(force)
}
