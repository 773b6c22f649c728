// Package run runs one session of any suite: check, prepare, hold, collect, judge. A driver implements the steps that
// differ between one machine, several machines and Kubernetes.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A session is the state of one run, or of one part of a run (--runner K/N).
type session struct {
	Config
	driver driver

	runnerNumber   int            // K of --runner K/N; 0: the whole run
	generatedID    bool           // soak chose the test id
	startAt        time.Time      // zero: at once
	runStart       time.Time      // start of a run that another soak process started; zero: this process starts it
	replacedRunner replacedRunner // the runner that this part replaces; zero: none
	actions        []plan.Action  // of --at
	secrets        *secret.Values
	interval       time.Duration // of the noops that the target sends; 0: not known
	clusterSize    int
	certificates   target.Certificates

	k6, script    string
	needs         runners.Requirements
	service       shard.Service    // zero until the description is known
	desc          *service.Service // the description; nil until it is known
	isModule      bool             // the description is a module, which the script has to load
	customToken   bool             // the service's token() returns a token other than SUBSCRIBE_TOKEN
	dir           results.Dir
	location      string // of this run's shards
	targets       target.Targets
	cluster       *target.Target    // the cluster with which the suite compares the target; nil: none
	warnPrints    bool              // warn prints each warning, because printWarnings was called
	managesTarget bool              // soak starts the target for this run
	hasShards     bool              // the shards of the run are in its folder
	record        results.RunRecord // the observations of this session, for run.json
	warnMu        sync.Mutex        // guards record.Warnings in warn, which actions call in parallel
	ci            *ci.Reporter      // reports the verdict; may be nil
	watch         *live.Watch       // the reports of the runners, for display
	page          *livePage         // nil: no live page
}

// Run runs a session with the settings of c. After an error it returns no verdict, and all processes have ended unless
// the error states otherwise. The first Ctrl-C stops the runners gracefully; a second one ends everything at once.
func Run(ctx context.Context, c Config) (verdict.Outcome, error) {
	return reportToCI(c.CI, c.Stdout, func(reporter *ci.Reporter) (verdict.Outcome, error) {
		s := newSession(c)
		s.ci = reporter
		if err := s.complete(time.Now()); err != nil {
			return "", UsageError{err}
		}
		graceful, force, stop := interrupts(ctx)
		defer stop()
		return s.run(graceful, force)
	})
}

// reportToCI calls judge and reports the verdict or the error to the CI systems. It removes secrets from the error.
func reportToCI(systems ci.Systems, stdout io.Writer, judge func(*ci.Reporter) (verdict.Outcome, error)) (verdict.Outcome, error) {
	if err := systems.Check(); err != nil {
		return "", UsageError{err}
	}
	reporter := ci.Begin(systems, stdout)
	outcome, err := judge(reporter)
	return outcome, reporter.End(secret.Error(err), func(sentence string) { printMessage("warning: " + sentence) })
}

// newSession returns a session with the command, the versions, the machine, and the description if it is built in.
func newSession(c Config) *session {
	secrets := secret.Environment(os.Environ())
	s := &session{Config: c, secrets: secrets, watch: new(live.Watch), record: results.RunRecord{Provenance: report.Provenance{
		Command: c.commandLine(os.Args, secrets), Version: c.Version, Commit: c.Commit, Go: runtime.Version(), Machine: resources.ThisMachine(),
	}}}
	s.Settings = map[string]string{}
	maps.Copy(s.Settings, c.Settings)
	s.chooseService()
	return s
}

// run runs all steps of the session, with a new driver if the session has none. See interrupts for graceful and force.
func (s *session) run(graceful, force context.Context) (outcome verdict.Outcome, err error) {
	if s.driver == nil {
		if s.driver, err = newDriver(s); err != nil {
			return "", err
		}
	}
	if err := s.replace(graceful, time.Now()); err != nil {
		return "", err
	}
	switch err := s.withProgressReports("checking the script and this machine", func() error { return s.driver.check(graceful) }); {
	case err != nil && errors.Is(err, context.Canceled):
		return "", errStopped
	case err != nil:
		s.printWarnings()
		return "", err
	}
	if err := s.checkActions(); err != nil {
		return "", UsageError{err}
	}
	s.announce()
	defer s.driver.close(force)
	err = results.CheckFolder(filepath.Join(s.Out, s.Plan.TestID))
	if err == nil { // before prepare, so that an unsuitable service leaves no folder
		err = s.withProgressReports("waiting for the service", func() error { return s.tryService(graceful) })
	}
	if err == nil {
		err = s.prepareDriver(graceful)
	}
	switch {
	case err != nil && graceful.Err() != nil && s.On == "local" && errors.Is(err, context.Canceled):
		return "", errStopped
	case err != nil && graceful.Err() != nil:
		return "", errors.Join(errStopped, err)
	case err != nil:
		return "", err
	}
	if err := s.savePlan(); err != nil {
		return "", err
	}
	if s.service.Backend {
		s.record.Backend = s.targets[0].Version(graceful)
	}
	s.announceTarget()
	if err := s.serveLivePage(); err != nil {
		return "", err
	}
	defer s.closeLivePage(graceful, force)
	if err := s.awaitStart(graceful); err != nil {
		return "", err
	}
	if err := s.runRounds(graceful, force); err != nil {
		return "", err
	}
	defer s.removePipes()
	return s.finish(graceful, force)
}

// finish checks the target, stores the ledger of the service and returns the verdict, after the runners have ended.
func (s *session) finish(graceful, force context.Context) (verdict.Outcome, error) {
	s.stage("JUDGING", "the runners have ended; computing the verdict")
	s.reportWait("checking the target", func() {
		failures, unreachable := s.driver.targetState(force)
		s.record.Failures, s.record.Unreachable = append(s.record.Failures, failures...), append(s.record.Unreachable, unreachable...)
	})
	if err := s.withProgressReports("reading the ledger of the service", func() error { return s.storeRecords(force) }); err != nil {
		return "", err
	}
	return s.driver.judge(graceful, force)
}

// prepareDriver prepares the driver. After an error it calls Discard for the folder of the run, unless other parts may
// use the folder.
func (s *session) prepareDriver(ctx context.Context) error {
	err := s.withProgressReports("preparing the target", func() error { return s.driver.prepare(ctx) })
	if err != nil && s.runnerNumber == 0 {
		s.dir.Discard()
	}
	return err
}

func (s *session) savePlan() error {
	p := s.Plan
	if s.runnerNumber > 0 {
		p.RunID, p.ControlURL, p.Seconds = "", "", cmp.Or(s.replacedRunner.runSeconds, p.Seconds)
	}
	return s.dir.WriteJSON(results.PlanFile, p)
}

func (s *session) findScript() (err error) {
	if s.k6 == "" {
		s.k6, err = Program("k6")
	}
	if s.script = cmp.Or(s.script, s.Script); s.script == "" && err == nil {
		s.script, err = Script(s.Suite.Script...)
	}
	return err
}

// unusedURL is the URL of the target for a script that is loaded before the target runs.
const unusedURL = "http://127.0.0.1:1"

// inspect sets the requirements of the script: from the plan if settings define the plan, else from the script itself.
// Loading the script also detects invalid settings, and loads a description that is a module.
func (s *session) inspect(ctx context.Context) (err error) {
	switch {
	case s.isModule:
		err = s.describe(ctx)
	case s.Suite.Plan.BySettings && s.Suite.Declares(): // the suite has settings outside of the plan
		_, err = s.loadScript(ctx)
	}
	if err != nil {
		return err
	}
	switch {
	case s.Suite.Plan.BySettings:
		s.planNeeds()
		return nil
	case s.isModule: // describe has loaded the script
		return nil
	}
	address := unusedURL
	if s.Suite.Target.Kind == suite.MutualTLS {
		if err := s.certificates.Check(); err != nil {
			return err
		}
		address = "https://127.0.0.1:1"
	}
	p, settings, env := s.Plan, s.settings(nil), map[string]string{}
	p.BackendURL, settings["CLUSTER_URL"] = address, address
	if s.certificates != "" {
		env["CERTS"] = string(s.certificates)
	}
	s.needs, err = s.load(ctx, plan.Document{Plan: p, Settings: settings}, env)
	return err
}

func (s *session) planNeeds() {
	p := &s.Plan
	s.needs = runners.Requirements{VUs: p.Iterations(), Duration: time.Duration(p.Seconds)*time.Second + p.Teardown()}
}

// settings returns the settings that the script of the suite receives in addition to the plan, by name. extra has the
// settings of a further round, which replace others of the same name.
func (s *session) settings(extra map[string]string) map[string]string {
	values := map[string]string{}
	names := []string{"PROFILE"}
	for _, setting := range s.Suite.Settings() {
		names = append(names, setting.Name)
	}
	names = append(names, s.Suite.Variables...)
	for _, setting := range s.Plan.Settings() {
		if !s.Suite.Plan.BySettings && setting.Help != "" && setting.SuiteHelp == "" { // the suite has no flag for the setting
			names = append(names, setting.Name)
		}
	}
	for _, name := range names {
		if value := s.setting(name, ""); value != "" {
			values[name] = value
		}
	}
	if s.ClusterURL != "" {
		values["CLUSTER_URL"] = s.ClusterURL
	}
	maps.Copy(values, s.Settings)
	maps.Copy(values, extra)
	return values
}

// document returns the input of the runners. extra is as in settings.
func (s *session) document(extra map[string]string) plan.Document {
	d := plan.Document{Plan: s.Plan, Settings: s.settings(extra), OneClock: s.Plan.Published() && s.On != "k8s" && s.runnerNumber == 0, FirstStartUS: s.replacedRunner.startUS}
	for _, a := range s.actions {
		d.Actions = append(d.Actions, plan.Action{Name: a.Name, At: a.At})
	}
	return d
}

// environment returns the variables of every runner, which are settings of k6.
//
// Without summary and thresholds, k6 aggregates no metrics. That saves the memory of one value per request, and CPU
// time. On Kubernetes, suites with streams keep thresholds, because their progress comes from the aggregated metrics.
// A soak with a script of the user keeps both.
func (s *session) environment() map[string]string {
	env := map[string]string{}
	if s.Suite.Declares() || s.Script == "" {
		env["K6_SUMMARY_MODE"] = "disabled"
		if s.On != "k8s" || !s.Suite.Target.Streams {
			env["K6_NO_THRESHOLDS"] = "true"
		}
	}
	return env
}

// localPlan returns the part of the plan that this machine runs.
func (s *session) localPlan() plan.Plan {
	p := s.Plan
	if s.runnerNumber > 0 {
		p.Connections, p.Runners, p.BackendURL = p.Share(s.runnerNumber), 1, p.BackendOf(s.runnerNumber)
	}
	return p
}

// allTargets returns the targets, and the cluster with which the suite compares them.
func (s *session) allTargets() target.Targets {
	if s.cluster == nil {
		return s.targets
	}
	return append(slices.Clip(s.targets), s.cluster)
}

// awaitStart waits until the time of --start-at, and returns errStopped if ctx ends first.
func (s *session) awaitStart(ctx context.Context) error {
	wait := time.Until(s.startAt)
	if s.startAt.IsZero() || wait <= 0 {
		return nil
	}
	fmt.Fprintf(s.Stdout, "starts at %s UTC, in %s\n", s.startAt.UTC().Format(time.DateTime), wait.Round(time.Second))
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return errStopped
	}
}

var errStopped = errors.New("stopped before the start, so no load was generated")

// storeRecords stores the target's ledger and the records of this session, and then completes the manifest. Only a
// target with the protocol of our backend, or the numbered model, may have a ledger.
func (s *session) storeRecords(ctx context.Context) error {
	if s.Suite.Target.Streams && s.service.Backend {
		s.saveLedger(ctx)
	}
	if s.Suite.Target.Kind == suite.Model {
		s.saveModelLedger(ctx)
	}
	if err := s.dir.WriteJSON(results.RunName(s.runnerNumber), s.record); err != nil {
		return fmt.Errorf("%w; make the folder writable or free disk space, and repeat the run: its verdict requires this file", err)
	}
	return s.dir.Seal(s.runnerNumber)
}

// warn adds a warning to the verdict and to the page. It prints the warning unless printWarnings will do so.
func (s *session) warn(text string) {
	s.warnMu.Lock()
	s.record.Warnings = append(s.record.Warnings, text)
	s.warnMu.Unlock()
	s.watch.Note("warning: " + text)
	if s.warnPrints {
		printMessage("warning: " + text)
	}
}

// printWarnings prints the warnings so far, after the header line or before an error. From then on, warn prints each
// new warning itself.
func (s *session) printWarnings() {
	for _, text := range s.record.Warnings {
		printMessage("warning: " + text)
	}
	s.warnPrints = true
}

// findProxies records the proxies of the runners. It warns about each, because a proxy is part of the measured system.
func (s *session) findProxies() error {
	if s.Suite.Target.Kind == suite.MutualTLS { // its handshakes never use a proxy
		return nil
	}
	for _, target := range append(s.Plan.BackendURLs(), s.ClusterURL) {
		p, err := proxy.FromEnvironmentTo(target)
		if err != nil {
			return UsageError{err}
		}
		if p == nil || slices.Contains(s.record.Proxies, p.String()) {
			continue
		}
		s.record.Proxies = append(s.record.Proxies, p.String())
		host := target
		if u, err := url.Parse(target); err == nil {
			host = u.Host
		}
		s.warn(fmt.Sprintf("the runners connect to %s through the proxy %s (%s), whose delays, disconnects and refusals count as the service's; list the host in NO_PROXY to connect directly",
			host, p, p.Variable()))
	}
	return nil
}
