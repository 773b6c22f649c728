package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Attach continues a run whose soak process has ended, until the run has a verdict. The run is on this machine if its
// first runner has a pipe in the folder of the run, and otherwise on Kubernetes.
func Attach(ctx context.Context, c Config) (verdict.Outcome, error) {
	c.On = "k8s"
	if _, err := os.Stat(runners.PipePath(filepath.Join(c.Out, c.Plan.TestID), 1)); err == nil {
		c.On = "local"
	} else if err := cluster.CheckTestID(c.Plan.TestID); err != nil {
		return "", UsageError{err}
	}
	return reportToCI(c.CI, c.Stdout, func(t *ci.Reporter) (verdict.Outcome, error) {
		graceful, force, stop := interrupts(ctx)
		defer stop()
		s := newSession(c)
		s.ci, s.driver = t, &attachedDriver{kubernetes{session: s}}
		if c.On == "local" {
			s.driver = &reattachedDriver{local: local{session: s}}
		}
		return s.run(graceful, force)
	})
}

// An attachedDriver attaches to a run in the cluster.
type attachedDriver struct{ kubernetes }

func (d *attachedDriver) check(ctx context.Context) error {
	d.dir = results.Dir(filepath.Join(d.Out, d.Plan.TestID))
	if err := d.connect(); err != nil {
		return UsageError{notFoundError(d.dir, err)}
	}
	d.namespace = d.Kubernetes.Namespace
	job, err := d.client.Find(ctx, d.namespace, d.Plan.TestID)
	switch {
	case errors.Is(err, cluster.ErrNoRun):
		return UsageError{notFoundError(d.dir, err)}
	case err != nil:
		return notFoundError(d.dir, err)
	}
	d.Plan, d.location, d.Shards = job.Plan, job.Shards, job.Shards
	if d.Suite, err = suite.ByName(d.Plan); err != nil {
		return err
	}
	d.chooseService()
	if err := d.Suite.Check(d.Plan); err != nil {
		return err
	}
	if d.needs.Duration = job.Length; d.Suite.Plan.BySettings {
		d.planNeeds()
	}
	return nil
}

// notFoundError adds a hint to the error about a run that is not in the cluster. The hint depends on the folder of the
// run on this machine, if there is one.
func notFoundError(d results.Dir, err error) error {
	if _, statErr := os.Stat(d.Path(results.PlanFile)); statErr != nil {
		return fmt.Errorf("attach: this machine has no run %s; on Kubernetes: %w", d.Relative(), err)
	}
	if _, statErr := os.Stat(d.Path(results.RunFile)); statErr == nil {
		return fmt.Errorf("%w; if it ran on this machine, it has ended: `soak merge %s` makes its verdict", err, d.Relative())
	}
	return fmt.Errorf("%w; if it ran on this machine, its runners ended with soak, because soak started their target or ran actions; start the service by itself, pass BACKEND_URL, and repeat the run", err)
}

func (d *attachedDriver) prepare(ctx context.Context) (err error) {
	dir := d.dir
	if d.dir, err = results.Create(d.Out, d.Plan.TestID); err != nil {
		d.dir = dir // the folder of the soak process that was killed
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
