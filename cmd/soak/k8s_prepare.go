package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sse-soak/sse-soak/internal/cluster"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/store"
)

// buildOverlay finds an overlay by name or path.
func buildOverlay(overlay string) (*cluster.Manifests, error) {
	if info, err := os.Stat(overlay); err == nil && info.IsDir() {
		return cluster.Build(overlay)
	}
	file, err := beside("infra", "k6-operator", "overlays", overlay, "kustomization.yaml")
	if err != nil {
		return nil, usageError{fmt.Errorf("there is no overlay %q: name one of infra/k6-operator/overlays, or a folder", overlay)}
	}
	return cluster.Build(filepath.Dir(file))
}

// prepare brings the cluster to where the TestRun can be made: the objects of the overlay, a fresh
// backend, a bucket that answers.
func (s *clusterSession) prepare(ctx context.Context, m *cluster.Manifests) (err error) {
	s.namespace = m.TestRun.GetNamespace()
	if s.Shards == "" && m.Output() != "" {
		s.Shards, _ = store.Split(m.Output())
	}
	if !strings.HasPrefix(s.Shards, "s3://") {
		return usageError{errors.New("the runners need a bucket for their shards: give one by --shards s3://BUCKET/PREFIX, or in the overlay")}
	}
	s.place = store.Join(s.Shards, s.plan.TestID)
	if s.plan.BackendURL == "" {
		if s.plan.BackendURL, err = m.FreshBackend(s.plan); err != nil {
			return err
		}
		if s.plan.BackendURL == "" {
			return usageError{errors.New("BACKEND_URL is missing: this overlay has no backend of its own to soak")}
		}
		s.own = true
	}
	others, err := s.client.Others(ctx, s.namespace)
	switch {
	case err != nil:
		return err
	case s.own && len(others) > 0:
		return fmt.Errorf("the run %s is in %s already, and a fresh backend for this one would cut it off: wait for it, or name another BACKEND_URL", others[0], s.namespace)
	}
	if s.dir, err = results.Create(s.Out, s.plan.TestID); err != nil {
		return err
	}
	if err := s.dir.Begin(0, results.NewManifest(0, s.plan.RunID, s.own)); err != nil {
		return err
	}
	s.say("preparing the namespace " + s.namespace)
	left, err := s.client.Apply(ctx, m.Setup)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		s.say(fmt.Sprintf("this user may not change %d objects of the overlay; taking them to be there", len(left)))
	}
	for _, o := range m.Setup {
		if o.GetKind() == "Deployment" {
			if err := s.client.Await(ctx, o.GetNamespace(), o.GetName(), s.settings.cluster.start, s.say); err != nil {
				return err
			}
		}
	}
	if err := s.reachTarget(ctx); err != nil {
		return err
	}
	if err := s.targets.Probe(ctx, s.plan.Interval()); err != nil && s.backend != nil {
		return err // one that only the cluster reaches is for the runners to find out
	}
	if err := s.tryShards(ctx); err != nil {
		return err
	}
	return m.Render(s.plan, s.place, s.targets[0].Token != "")
}
