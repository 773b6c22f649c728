package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/preflight"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/runners"
	"github.com/sse-soak/sse-soak/internal/store"
	"github.com/sse-soak/sse-soak/internal/target"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A session is one `soak run` from its target to its verdict.
type session struct {
	settings
	dir     results.Dir
	place   string // of this run's shards
	run     results.Run
	targets target.Several
	own     bool // the target is our backend, started for this run
	group   *runners.Group
	stdout  io.Writer
}

// soak runs one soak. An error means that there is no verdict, and that nothing runs any more.
func soak(parent context.Context, s settings, stdout io.Writer) (verdict.Outcome, error) {
	if parent == nil {
		parent = context.Background()
	}
	gentle, kill, stop := interrupts(parent)
	defer stop()
	ses := &session{settings: s, stdout: stdout, run: results.Run{Command: os.Args, Version: version(), Machine: resources.ThisMachine()}}
	if err := ses.check(); err != nil {
		return "", err
	}
	k6, err := beside("k6")
	if err != nil {
		return "", err
	}
	if ses.script == "" {
		if ses.script, err = beside("load-tests", "sse", "connectionTest.js"); err != nil {
			return "", err
		}
	}
	if err := ses.makeRoom(gentle); err != nil {
		return "", err
	}
	if err := ses.startTarget(gentle); err != nil {
		return "", err
	}
	defer ses.targets.Stop(kill)
	if err := ses.savePlan(); err != nil {
		return "", err
	}
	ses.run.Backend = ses.targets[0].Version(gentle)
	ses.announce()
	if err := ses.awaitStart(gentle); err != nil {
		return "", err
	}
	ses.group, err = runners.Start(runners.Config{
		K6: k6, Script: ses.script, Plan: ses.plan, Only: s.part, Token: ses.targets[0].Token, Dir: string(ses.dir), Shards: ses.place, Say: complain,
	})
	if err != nil {
		return "", err
	}
	ses.hold(gentle, kill)
	ses.settle(kill)
	if s.part > 0 {
		return ses.concludePart(gentle, kill)
	}
	answers := ses.collect(gentle, kill)
	outcome, err := ses.conclude(kill)
	if err != nil || !answers {
		return outcome, err
	}
	if err := ses.deliver(gentle, kill); err != nil {
		complain("warning: " + err.Error())
	}
	return outcome, nil
}

// makeRoom makes the folder of the run, and checks that shards can be written to their location.
func (s *session) makeRoom(ctx context.Context) (err error) {
	manifest := results.NewManifest(s.part, s.plan.RunID, s.plan.BackendURL == "")
	if s.Shards != "" {
		s.place = store.Join(s.Shards, s.plan.TestID)
		if err := s.claim(ctx, manifest); err != nil {
			return err
		}
	}
	if s.part > 0 {
		s.dir, err = results.Join(s.Out, s.plan.TestID, s.part)
	} else {
		s.dir, err = results.Create(s.Out, s.plan.TestID)
	}
	if err != nil {
		return err
	}
	if s.Shards == "" {
		s.place = s.dir.Path(results.ShardsDir)
	}
	return s.dir.Begin(s.part, manifest)
}

// savePlan writes down what was planned. That of a run in parts is the same for all of them.
func (s *session) savePlan() error {
	p := s.plan
	if s.part > 0 {
		p.RunID = ""
	}
	return s.dir.WriteJSON(results.PlanFile, p)
}

// services are the services that this machine's runners soak.
func (s *session) services() preflight.Services {
	if s.plan.BackendURL == "" {
		return preflight.Services{Count: s.backends, Here: true, Proxied: !s.noNginx}
	}
	return preflight.Services{Count: min(len(s.plan.BackendURLs()), s.here().Runners)}
}

func (s *session) check() error {
	s.run.Limits = preflight.Look()
	errs, warnings := preflight.Check(s.here(), s.run.Limits, s.services())
	s.run.Warnings = withIgnored(warnings)
	for _, w := range s.run.Warnings {
		fmt.Fprintln(os.Stderr, "soak: warning:", w)
	}
	if len(errs) == 0 {
		return nil
	}
	joined := make([]error, len(errs))
	for i, e := range errs {
		joined[i] = errors.New(e)
	}
	return errors.Join(joined...)
}

// withIgnored adds a warning about k6's environment variables that are ignored.
func withIgnored(warnings []string) []string {
	if said := runners.Ignored(); said != "" {
		warnings = append(warnings, said)
	}
	return warnings
}

func (s *session) startTarget(ctx context.Context) error {
	if s.plan.BackendURL != "" {
		s.targets = target.Remotes(s.plan.BackendURLs(), os.Getenv("BACKEND_TOKEN"))
		return s.targets.Probe(ctx, s.plan.Interval())
	}
	backend, err := beside("backend")
	if err != nil {
		return err
	}
	s.targets, err = target.StartLocals(ctx, target.LocalConfig{
		Backend: backend, Connections: s.plan.PerBackend(s.backends), NoopInterval: s.plan.Interval(),
		LogDir: string(s.dir), NoNginx: s.noNginx,
	}, s.backends)
	if err != nil {
		return err
	}
	s.plan.BackendURL = s.targets.URL()
	s.own, s.run.OneClock, s.run.Nginx = true, true, s.targets.Nginx()
	return nil
}

func (s *session) announce() {
	p := s.plan
	through := ""
	if s.targets.Local() {
		what := "backend"
		if n := len(s.targets); n > 1 {
			what = fmt.Sprintf("%d backends", n)
		}
		through = " (" + what + " behind " + s.targets.Nginx() + ", started here)"
		if s.targets.Nginx() == "" {
			through = " (" + what + " started here; nginx is not installed, so without it)"
			if s.noNginx {
				through = " (" + what + " started here, without nginx)"
			}
		}
	}
	part := ""
	if s.part > 0 {
		part = fmt.Sprintf(", here only number %d", s.part)
	}
	fmt.Fprintf(s.stdout, "soak %s: %s for %s, a noop every %v s, %s%s\ntarget %s%s\n", p.TestID,
		report.Count(p.Connections, "connection"), time.Duration(p.Seconds)*time.Second, p.NoopInterval, report.Count(p.Runners, "runner"), part, p.BackendURL, through)
}

// hold waits for the runners while it samples and shows progress.
func (s *session) hold(gentle, kill context.Context) {
	watching, stop := context.WithCancel(kill)
	var watchers sync.WaitGroup
	meter := newMeter(s.targets, s.dir)
	if s.part <= 1 { // of several machines one asks the target
		watchers.Go(func() { meter.run(watching) })
	}
	watchers.Go(func() {
		showProgress(watching, s.plan.Hold(), func() string { return progressLine(s.here(), s.group, meter) })
	})
	unleash := context.AfterFunc(kill, s.group.Kill)
	s.group.Wait(gentle)
	unleash()
	stop()
	watchers.Wait()
	if gentle.Err() != nil {
		s.run.Problems = append(s.run.Problems, "the run was stopped by a signal before its end")
	}
	s.run.Warnings = append(s.run.Warnings, meter.warnings()...)
	s.askPrometheus(kill, meter.start)
}

// settle collects the problems and crashes of this machine's processes.
func (s *session) settle(ctx context.Context) {
	s.run.Problems = append(s.run.Problems, s.group.Problems()...)
	for _, c := range s.group.Complaints() {
		fmt.Fprintln(os.Stderr, "soak:", c)
	}
	if err := s.targets.Ready(ctx); err != nil {
		s.run.Problems = append(s.run.Problems, err.Error())
	}
	s.run.Failures = s.targets.Deaths()
}

// conclude fetches the ledger of the target, and judges the run.
func (s *session) conclude(ctx context.Context) (verdict.Outcome, error) {
	s.saveLedger(ctx, results.LedgerFile)
	if err := s.dir.WriteJSON(results.RunFile, s.run); err != nil {
		return "", err
	}
	if err := s.savePlan(); err != nil {
		return "", err
	}
	if err := s.dir.Seal(0); err != nil {
		return "", err
	}
	return conclude(s.dir, s.stdout)
}

func (s *session) saveLedger(ctx context.Context, name string) {
	saveLedger(ctx, s.dir, name, s.targets, s.own, s.plan.Prefix, &s.run)
}
