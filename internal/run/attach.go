package run

import (
	"context"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Attach follows a run on Kubernetes that another soak left, by its test id, to its verdict.
func Attach(ctx context.Context, c Config) (verdict.Outcome, error) {
	if err := cluster.CheckTestID(c.Plan.TestID); err != nil {
		return "", UsageError{err}
	}
	return tellCI(c.CI, c.Stdout, func(t *ci.Teller) (verdict.Outcome, error) {
		graceful, force, stop := interrupts(ctx)
		defer stop()
		c.On = "k8s"
		s := newSession(c)
		s.ci, s.driver = t, &attached{kubernetes{session: s}}
		return s.run(graceful, force)
	})
}

// An attached driver finds the run in the cluster.
type attached struct{ kubernetes }

func (d *attached) check(ctx context.Context) (err error) {
	if err := d.connect(); err != nil {
		return err
	}
	d.namespace = d.Kubernetes.Namespace
	found, err := d.client.Find(ctx, d.namespace, d.Plan.TestID)
	if err != nil {
		return err
	}
	d.Plan, d.location, d.Shards = found.Plan, found.Shards, found.Shards
	if d.Suite, err = suite.ByName(d.Plan); err != nil {
		return err
	}
	d.chooseService()
	if err := d.Suite.Check(d.Plan); err != nil {
		return err
	}
	if d.needs.Duration = found.Length; d.Suite.Plan.DeclaredLoad {
		d.planNeeds()
	}
	return nil
}

func (d *attached) prepare(ctx context.Context) (err error) {
	if d.dir, err = results.Create(d.Out, d.Plan.TestID); err != nil {
		d.dir = results.Dir(filepath.Join(d.Out, d.Plan.TestID)) // of the soak that was cut off
		d.record.Actions = d.dir.Actions()
	} else if err := d.dir.Begin(0, d.manifest()); err != nil {
		return err
	}
	if err := d.reachTarget(ctx); err != nil {
		d.warn(err.Error())
	} else {
		d.answers = d.targets.Probe(ctx, d.interval) == nil
	}
	return nil
}
