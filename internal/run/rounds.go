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

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// runRounds runs the script, and repeats it while the suite requests another round. Meanwhile it samples the target.
// After the first round it collects the shards, and after the last one it queries Prometheus.
func (s *session) runRounds(graceful, force context.Context) error {
	watchCtx, stop := context.WithCancel(force)
	var watcher sync.WaitGroup
	meter := newMeter(s)
	if s.page != nil {
		meter.onSample = s.page.view.Sample
	}
	if s.runnerNumber <= 1 { // with --runner K/N, only runner 1 samples the target
		watcher.Go(func() { meter.run(watchCtx) })
		s.reportWait("sampling the target", func() { <-meter.firstSample }) // suites compare later samples with the first one
	}
	defer func() {
		stop()
		s.reportWait("sampling the target", watcher.Wait)
		s.record.Warnings = append(s.record.Warnings, meter.warnings()...)
		if s.runnerNumber <= 1 {
			s.queryPrometheus(graceful, force, meter.start)
		}
	}()
	var extra map[string]string
	for n := 0; ; n++ {
		dir, err := s.dir.Round(n)
		if err != nil {
			return err
		}
		r := round{dir: dir, shards: s.location, settings: extra}
		if n > 0 {
			r.shards = dir.Path(results.ShardsDir)
		}
		if err := s.runRound(graceful, force, r, meter); err != nil {
			return err
		}
		if n == 0 && s.runnerNumber == 0 {
			s.collect(graceful, force)
		}
		if s.Suite.Next == nil || s.incomplete() || s.runnerNumber > 0 {
			return nil
		}
		resultsSoFar, err := s.dir.SuiteRun(s.record)
		if err != nil {
			return err
		}
		if extra = s.Suite.Next(resultsSoFar); extra == nil {
			return nil
		}
		if s.On != "local" {
			s.warn("further rounds are possible only with --on local, so the run has one round")
			return nil
		}
		next := maps.Clone(s.Settings)
		maps.Copy(next, extra)
		line := "searching further:"
		for _, name := range slices.Sorted(maps.Keys(next)) {
			line += " " + name + "=" + next[name]
		}
		fmt.Fprintln(s.Stdout, line)
	}
}

// runRound runs the script once, and shows the progress of the runners. In the first round it also runs the actions.
func (s *session) runRound(graceful, force context.Context, r round, m *meter) error {
	group, err := s.driver.start(graceful, r)
	if err != nil {
		return err
	}
	watchCtx, stop := context.WithCancel(force)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-group.Started():
			if s.page != nil {
				s.page.view.Start(cmp.Or(s.runStart, time.Now()))
			}
			s.display(m).show(watchCtx)
		case <-watchCtx.Done():
		}
	})
	watcher.Go(func() { warnOfFailedWrites(watchCtx, r.dir) })
	cancelStage := context.AfterFunc(graceful, func() { s.stage("STOPPING", "stopping the run before its end") })
	defer cancelStage()
	actionCtx, stopActions := context.WithCancel(graceful) // Ctrl-C ends the actions at once
	if len(s.actions) > 0 && r.dir == s.dir {              // only in the first round
		watcher.Go(func() { s.record.Actions = s.runActions(actionCtx, force, group.Started()) })
	}
	err = group.Wait(graceful, force)
	stopActions()
	stop()
	watcher.Wait()
	if err != nil && len(s.record.Actions) > 0 { // the run continues in the cluster, and its later verdict needs the actions
		err = errors.Join(err, s.dir.WriteJSON(results.RunName(s.runnerNumber), s.record))
	}
	if err != nil {
		return err
	}
	if failure := failedWrites(r.dir); failure != "" {
		s.warn(failure)
	}
	if graceful.Err() != nil {
		s.record.RunnerEnds = append(s.record.RunnerEnds, s.stopEnd())
	}
	s.record.RunnerEnds = append(s.record.RunnerEnds, group.Ends()...)
	return nil
}

func (s *session) stopEnd() shard.RunnerEnd {
	subject := "the run"
	if s.runnerNumber > 0 {
		subject = fmt.Sprintf("runner %d", s.runnerNumber)
	}
	return shard.RunnerEnd{Runner: s.runnerNumber, Text: subject + " was stopped by a signal before its end"}
}

// incomplete reports whether problems of this session prevent a pass, independently of the shards.
func (s *session) incomplete() bool { return len(s.record.Problems)+len(s.record.RunnerEnds) > 0 }

// duration returns the planned time for which streams are open; the summary of a stopped run states the same time.
// Without streams, it returns the maximum duration of the runners.
func (s *session) duration() time.Duration {
	p := s.Plan
	if !s.Suite.Plan.BySettings {
		p.Seconds = s.needs.Seconds
	}
	if p.Seconds == 0 {
		return s.needs.Duration
	}
	return p.Hold()
}
