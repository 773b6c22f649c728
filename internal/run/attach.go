package run

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Attach continues a run whose soak process has ended, until the run has a verdict. A run is on this machine if the
// folder of the run has the pipe of its first runner. Otherwise it is on Kubernetes.
func Attach(ctx context.Context, c Config) (verdict.Outcome, error) {
	c.On = "k8s"
	if _, err := os.Stat(runners.PipePath(filepath.Join(c.Out, c.Plan.TestID), 1)); err == nil {
		c.On = "local"
	} else if err := cluster.CheckTestID(c.Plan.TestID); err != nil {
		return "", UsageError{err}
	}
	return reportToCI(c.CI, c.Stdout, func(reporter *ci.Reporter) (verdict.Outcome, error) {
		graceful, force, stop := interrupts(ctx)
		defer stop()
		s := newSession(c)
		if err := cmp.Or(s.checkLocal(), s.trust()); err != nil {
			return "", UsageError{err}
		}
		s.ci, s.driver = reporter, &attachedKubernetes{kubernetes{session: s}}
		if c.On == "local" {
			s.driver = &attachedLocal{local: local{session: s}}
		}
		return s.run(graceful, force)
	})
}

// An attachedKubernetes continues a run on Kubernetes whose soak process has ended. It follows the runners in the
// cluster.
type attachedKubernetes struct{ kubernetes }

func (d *attachedKubernetes) check(ctx context.Context) error {
	d.dir = results.Dir(filepath.Join(d.Out, d.Plan.TestID))
	if err := d.connect(); err != nil {
		return UsageError{notFoundError(d.dir, err)}
	}
	d.namespace = d.Kubernetes.Namespace
	launch, err := d.client.Find(ctx, d.namespace, d.Plan.TestID)
	switch {
	case errors.Is(err, cluster.ErrNoRun):
		return UsageError{notFoundError(d.dir, err)}
	case err != nil:
		return notFoundError(d.dir, err)
	}
	d.Plan, d.location, d.Shards, d.runStart = launch.Plan, launch.Shards, launch.Shards, launch.Created
	if d.Suite, err = suite.ByName(d.Plan); err != nil {
		return err
	}
	d.chooseService()
	if err := d.Suite.Check(d.Plan); err != nil {
		return err
	}
	if d.needs.Duration = launch.Length; d.Suite.Plan.BySettings {
		d.planNeeds()
	}
	return nil
}

// notFoundError adds a hint to err. The hint depends on the folder of the run on this machine.
func notFoundError(d results.Dir, err error) error {
	if _, statErr := os.Stat(d.Path(results.PlanFile)); statErr != nil {
		return fmt.Errorf("attach: this machine has no run %s (on Kubernetes: %w)", d.Relative(), err)
	}
	if _, statErr := os.Stat(d.Path(results.RunFile)); statErr == nil {
		return fmt.Errorf("attach: if %[1]s ran on this machine, it has ended; judge it with `soak merge %[1]s` (on Kubernetes: %[2]w)", d.Relative(), err)
	}
	return fmt.Errorf("attach: %w; if the run was on this machine, its runners ended with soak, because soak started their target, had actions (--at), started only some of the runners (--runner), or ran another suite; start the service separately, pass BACKEND_URL, and repeat the run", err)
}

// prepare creates the folder of the run, or uses the folder of the soak process that has ended. A target that this
// machine cannot reach causes at most a warning.
func (d *attachedKubernetes) prepare(ctx context.Context) (err error) {
	dir := d.dir
	if d.dir, err = results.Create(d.Out, d.Plan.TestID); err != nil {
		d.dir = dir // the folder of the soak process that has ended
		d.record.Actions = d.dir.Run(0).Actions
	} else if err := d.dir.WriteManifest(0, d.manifest()); err != nil {
		return err
	}
	if err := d.reachTarget(ctx); err != nil {
		d.warn(err.Error())
	} else {
		d.reachable = d.targets.Probe(ctx, d.interval) == nil
	}
	return nil
}

// runnersSurvive reports whether the runners continue if soak is killed. Only the suite soak supports that, and only if
// one machine has all runners. The runners end with soak if soak started their target, which ends with soak. They also
// end if the run has actions, because only soak can run actions.
func (d *local) runnersSurvive() bool {
	return d.runnerNumber == 0 && !d.managesTarget && d.Suite.Plan.BySettings && d.Suite.InPlan() == "" && len(d.actions) == 0
}

// removePipes removes the pipes of the runners, which have ended. Another soak process may attach to the run until the
// pipes are removed.
func (s *session) removePipes() {
	for i := 1; i <= s.Plan.Runners; i++ {
		_ = os.Remove(runners.PipePath(string(s.dir), i))
	}
}

// An attachedLocal continues a run on this machine whose soak process was killed. It follows the runners that still
// run, and replaces the runners that ended early.
type attachedLocal struct {
	local
	group      *runners.Group
	unfinished []*shard.Shard // the last shards of the runners to replace
}

func (d *attachedLocal) check(ctx context.Context) (err error) {
	d.dir = results.Dir(filepath.Join(d.Out, d.Plan.TestID))
	if d.Plan, err = d.dir.Plan(); err != nil {
		return UsageError{fmt.Errorf("attach to %s: %w", d.dir.Relative(), err)}
	}
	d.location = d.shardsLocation(d.dir)
	if d.Suite, err = suite.ByName(d.Plan); err != nil {
		return err
	}
	d.chooseService()
	d.record.Limits = preflight.Read()
	if err := d.findScript(); err != nil {
		return err
	}
	if original := d.Plan; d.isModule {
		err = d.inspect(ctx)
		d.Plan = original
		if err != nil {
			return err
		}
	}
	d.planNeeds()
	if err := d.findProxies(); err != nil {
		return err
	}
	if err := d.checkTrust(ctx); err != nil {
		return err
	}
	return d.find(ctx)
}

// find attaches to the runners that still run, and stores the last shards of those that ended early.
func (d *attachedLocal) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(withProgress(ctx), claimTimeout)
	defer cancel()
	d.group = new(runners.Group)
	for i := 1; i <= d.Plan.Runners; i++ {
		last, err := lastShard(ctx, d.location, i)
		if err == nil && last == nil {
			err = fmt.Errorf("%s has no shard of this runner", d.location)
		}
		if err != nil {
			return fmt.Errorf("attach to runner %d: %w", i, err)
		}
		if d.runStart.IsZero() {
			d.runStart = time.UnixMicro(last.Runner.FirstStartUS())
		}
		running, err := d.group.Attach(runners.Config{Dir: string(d.dir), OnRetry: printMessage, OnReport: d.watch.Add}, last.Runner)
		switch {
		case err != nil:
			return err
		case running:
			fmt.Fprintf(d.Stdout, "runner %d of %s is still running\n", i, d.Plan.TestID)
		case last.Runner.State != shard.Finished:
			d.unfinished = append(d.unfinished, last)
		}
	}
	return nil
}

// checkTrust sets the targets. It returns an error if this process does not trust their certificates. The runners may
// trust them, and the check of the targets after the run would then fail the run. A target that does not respond is not
// an error.
func (d *attachedLocal) checkTrust(ctx context.Context) (err error) {
	if d.targets, err = target.Remotes(d.Plan.BackendURLs(), os.Getenv("BACKEND_TOKEN"), ""); err != nil {
		return err
	}
	if err := d.targets.Probe(ctx, 0); errors.As(err, new(x509.UnknownAuthorityError)) {
		return UsageError{err}
	}
	return nil
}

func (d *attachedLocal) prepare(context.Context) error {
	d.restartControl()
	return nil
}

// restartControl starts a reference server of the control group at the address of the previous one, which ended with
// its soak process. It does nothing if that address is not a loopback address, or if the path of soak is unknown.
func (d *attachedLocal) restartControl() {
	reference, err := url.Parse(d.Plan.ControlURL)
	if err != nil || d.Executable == "" || reference.Host == "" {
		return
	}
	if ip := net.ParseIP(reference.Hostname()); ip != nil && ip.IsLoopback() {
		d.ControlListen = reference.Host
		_, _ = d.startControl() // if it fails, the report shows the control group as silent
	}
}

// start replaces the runners that ended early. If a runner cannot be replaced, the verdict depends on MIN_COVERAGE.
func (d *attachedLocal) start(_ context.Context, r round) (roundRun, error) {
	for _, last := range d.unfinished {
		config := d.runnerConfig(r)
		predecessor, seconds, err := d.remaining(last, d.location, time.Now())
		if err != nil {
			d.warn(err.Error())
			continue
		}
		config.Index, config.Plan.Seconds, config.FirstStartUS, config.Survive = last.Runner.Index, seconds, predecessor.startUS, true
		group, err := runners.Start(config)
		if err != nil {
			d.warn(err.Error())
			continue
		}
		d.group.Join(group)
	}
	return d.group, nil
}
