package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/cluster"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// watch waits for the run's end while it samples and shows progress.
func (s *clusterSession) watch(gentle, kill context.Context, run *cluster.Run) error {
	watching, stop := context.WithCancel(kill)
	var watchers sync.WaitGroup
	meter := newMeter(s.targets, s.dir)
	watchers.Go(func() { meter.run(watching) })
	watchers.Go(func() {
		select {
		case <-run.Started():
			showProgress(watching, s.plan.Hold(), func() string { return clusterLine(s.plan, run, meter) })
		case <-watching.Done():
		}
	})
	err := run.Wait(gentle, s.say)
	if gentle.Err() != nil && kill.Err() == nil {
		s.run.Problems = append(s.run.Problems, "the run was stopped by a signal before its end")
		err = s.stopRunners(kill, run)
	}
	stop()
	watchers.Wait()
	s.run.Warnings = append(s.run.Warnings, meter.warnings()...)
	return err
}

// stopGrace is how long runners that were asked to end may take to.
const stopGrace = 90 * time.Second

// stopRunners asks the runners to end, and waits for them. Where it cannot, what they wrote last is
// collected all the same.
func (s *clusterSession) stopRunners(kill context.Context, run *cluster.Run) error {
	ctx, cancel := context.WithTimeout(kill, stopGrace)
	defer cancel()
	if phase, _ := run.Progress(); phase != cluster.Running {
		return kill.Err()
	}
	if err := run.Stop(ctx); err != nil {
		s.warn(err.Error())
		return kill.Err()
	}
	if err := run.Wait(ctx, s.say); err != nil && kill.Err() == nil {
		s.warn("not all runners ended in time after they were asked to")
	}
	return kill.Err()
}

// clusterLine is what k6 counts in all runners.
func clusterLine(p plan.Plan, run *cluster.Run, m *meter) string {
	_, n := run.Progress()
	parts := []string{
		fmt.Sprintf("%d/%d open", n.Opened-n.Closed, p.Connections),
		fmt.Sprintf("%d/%d noops", n.Noops, p.Connections*p.NoopsPerConnection()),
		fmt.Sprintf("%d missed", n.Missed),
	}
	for _, some := range []struct {
		count int64
		name  string
	}{{n.Closed, "closed"}, {n.Late, "late"}} {
		if some.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", some.count, some.name))
		}
	}
	if b := m.backend(); b != "" {
		parts = append(parts, b)
	}
	return strings.Join(parts, " · ")
}
