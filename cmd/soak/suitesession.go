package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/preflight"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/runners"
	"github.com/sse-soak/sse-soak/internal/target"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A suiteSession is one `soak run SUITE` from its target to its verdict.
type suiteSession struct {
	suiteSettings
	needs   runners.Requirements
	dir     results.Dir
	run     results.Run
	target  *target.Target
	cluster *target.Target // nil where the suite has none
	stdout  io.Writer
}

// How a suite samples, and what nginx is to be able to hold.
const (
	suiteSamples     = time.Second
	suiteConnections = 8192
	suiteInterval    = 15 * time.Second
)

func newSuiteSession(s suiteSettings, needs runners.Requirements, stdout io.Writer) *suiteSession {
	return &suiteSession{
		suiteSettings: s, needs: needs, stdout: stdout,
		run: results.Run{Command: os.Args, Version: version(), Machine: resources.ThisMachine()},
	}
}

func (s *suiteSession) check() error {
	s.run.Limits = preflight.Look()
	warnings, err := preflight.CheckUsers(s.needs.VUs, s.plan.Runners, s.run.Limits)
	s.run.Warnings = withIgnored(warnings)
	for _, w := range s.run.Warnings {
		fmt.Fprintln(os.Stderr, "soak: warning:", w)
	}
	return err
}

func (s *suiteSession) startTargets(ctx context.Context) (err error) {
	if s.target, err = s.startOne(ctx, s.plan.BackendURL, "", 1); err != nil {
		return err
	}
	s.plan.BackendURL = s.target.URL
	if s.MutualTLS {
		s.env = append(s.env, s.target.RunnerEnv(s.certificates)...)
	}
	if l := s.target.Local; l != nil {
		s.run.OneClock, s.run.Nginx = true, l.Nginx
	}
	if !s.Cluster {
		return nil
	}
	if s.cluster, err = s.startOne(ctx, s.clusterURL, "-cluster", s.clusterSize); err != nil {
		return err
	}
	s.clusterURL = s.cluster.URL
	return nil
}

// both are the target, and the cluster where there is one.
func (s *suiteSession) both() (out target.Several) {
	for _, t := range []*target.Target{s.target, s.cluster} {
		if t != nil {
			out = append(out, t)
		}
	}
	return out
}

// measured are all processes that are sampled: the first of each with its nginx.
func (s *suiteSession) measured() (out target.Several) {
	for _, t := range s.both() {
		out = append(append(out, t), t.Backends()[1:]...)
	}
	return out
}

// startOne is the service at url, or one that is started here.
func (s *suiteSession) startOne(ctx context.Context, url, suffix string, backends int) (*target.Target, error) {
	if url != "" {
		return s.remote(ctx, url)
	}
	backend, err := beside("backend")
	if err != nil {
		return nil, err
	}
	return target.StartLocal(ctx, target.LocalConfig{
		Backend: backend, Backends: backends, Suffix: suffix, Connections: suiteConnections, NoopInterval: cmp.Or(s.noopInterval, suiteInterval),
		LogDir: string(s.dir), NoNginx: s.noNginx, Certificates: s.certificates,
	})
}

func (s *suiteSession) remote(ctx context.Context, url string) (t *target.Target, err error) {
	t = target.Remote(url, os.Getenv("BACKEND_TOKEN"))
	if s.MutualTLS {
		if t, err = target.RemoteSecure(url, os.Getenv("BACKEND_TOKEN"), s.certificates); err != nil {
			return nil, err
		}
	}
	return t, t.Probe(ctx, s.noopInterval)
}

func (s *suiteSession) announce(script string) {
	where := s.plan.BackendURL
	if s.run.Nginx != "" {
		where += " (backend behind " + s.run.Nginx + ", started here)"
	}
	if s.cluster != nil {
		where += " and a cluster at " + s.clusterURL
	}
	fmt.Fprintf(s.stdout, "%s %s: %s by %s, up to %s, at most %s\ntarget %s\n",
		s.plan.Suite, s.plan.TestID, script, report.Count(s.plan.Runners, "runner"), report.Count(s.needs.VUs, "virtual user"), s.needs.Duration.Round(time.Second), where)
}

// rounds runs the script, and again as long as the suite wants to know more.
func (s *suiteSession) rounds(gentle, kill context.Context, c runners.Config) error {
	watching, stop := context.WithCancel(kill)
	var watcher sync.WaitGroup
	meter := newMeter(s.measured(), s.dir)
	meter.every = suiteSamples
	watcher.Go(func() { meter.run(watching) })
	defer func() {
		stop()
		watcher.Wait()
		s.run.Warnings = append(s.run.Warnings, meter.warnings()...)
	}()
	var more map[string]string
	for round := 0; ; round++ {
		dir, err := s.dir.Round(round)
		if err != nil {
			return err
		}
		c.Dir, c.Env = string(dir), s.scriptEnv(more)
		if err := s.hold(gentle, kill, c, meter); err != nil {
			return err
		}
		if gentle.Err() != nil {
			s.run.Problems = append(s.run.Problems, "the run was stopped by a signal before its end")
			return nil
		}
		if s.Next == nil || len(s.run.Problems) > 0 {
			return nil
		}
		r, err := s.dir.SuiteRun(s.run)
		if err != nil {
			return err
		}
		if more = s.Next(r); more == nil {
			return nil
		}
		fmt.Fprintf(s.stdout, "searching further: %s\n", strings.Join(s.scriptEnv(more), " "))
	}
}

// hold runs the script once.
func (s *suiteSession) hold(gentle, kill context.Context, c runners.Config, m *meter) error {
	f, err := runners.Start(c)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(kill)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		showProgress(watching, s.needs.Duration, func() string { return s.progress(f, m) })
	})
	unleash := context.AfterFunc(kill, f.Kill)
	f.Wait(gentle)
	unleash()
	stop()
	watcher.Wait()
	s.run.Problems = append(s.run.Problems, f.Problems()...)
	return nil
}

// progress says what the runners have done so far, in streams or in requests.
func (s *suiteSession) progress(f *runners.Group, m *meter) string {
	sum, _ := f.Progress()
	line := fmt.Sprintf("%s · %d requests · %d failed", sum.Stage, sum.Requests, sum.Failed)
	if s.Streams {
		line = fmt.Sprintf("%d open · %d noops · %d missed · %d late", sum.Open, sum.Received, sum.Missed(), sum.Late)
	}
	if b := m.backend(); b != "" {
		line += " · " + b
	}
	return line
}

func (s *suiteSession) conclude(ctx context.Context) (verdict.Outcome, error) {
	if err := s.both().Ready(ctx); err != nil {
		s.run.Failures = append(s.run.Failures, err.Error())
	}
	s.run.Failures = append(s.run.Failures, s.both().Deaths()...)
	if s.Streams {
		saveLedger(ctx, s.dir, results.LedgerFile, s.both(), s.both().Local(), s.plan.Prefix, &s.run)
	}
	if err := s.dir.WriteJSON(results.RunFile, s.run); err != nil {
		return "", err
	}
	if err := s.dir.Seal(0); err != nil {
		return "", err
	}
	return conclude(s.dir, s.stdout)
}
