package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// settings are the flags of `soak run`.
type settings struct {
	plan     plan.Plan
	out      string
	script   string
	noNginx  bool
	backends int       // to start here
	runner   string    // "K/N": this machine's part of a run on several
	part     int       // K; 0: the whole run
	shards   string    // place of the shards of all runs; "": the folder of the run
	startAt  time.Time // zero: at once
	on       string    // local or k8s
	cluster  clusterSettings
}

// variables are the environment variables behind the flags: the same names as make's.
var variables = map[string]string{
	"connections": "CONNECTIONS", "seconds": "SECONDS", "noop-interval": "NOOP_INTERVAL", "runners": "RUNNERS",
	"connections-per-vu": "CONNECTIONS_PER_VU", "backend-url": "BACKEND_URL", "prefix": "PREFIX", "testid": "TESTID",
	"late-ms": "LATE_MS", "max-late": "MAX_LATE", "reconnect": "RECONNECT", "max-hidden": "MAX_HIDDEN", "max-outage": "MAX_OUTAGE", "end-timeout": "END_TIMEOUT", "out": "OUT",
	"shards": "SHARDS", "start-at": "START_AT", "on": "ON", "overlay": "OVERLAY",
}

func runCommand(outcome *verdict.Outcome) *cobra.Command {
	s := settings{plan: plan.Default()}
	s.plan.ConnectionsPerVU = 0
	var startAt string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a soak and judge it",
		Long: "run starts the target (backend behind nginx on this machine, unless BACKEND_URL names another) and the\n" +
			"runners, waits, merges and judges. Each setting is a flag or the environment variable in brackets.\n" +
			"Two settings are read from the environment only: BACKEND_TOKEN, the service's bearer token, and PROMETHEUS_URL,\n" +
			"a Prometheus to take the CPU and memory of target and host from (docs/report.md).\n\n" +
			"Exit codes: 0 pass, 1 fail, 2 invalid (incomplete, or it could not run), 64 wrong usage.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return usageError{err}
			}
			if err := s.parsePart(); err != nil {
				return usageError{err}
			}
			var err error
			if s.startAt, err = parseStart(startAt, time.Now()); err != nil {
				return usageError{err}
			}
			if s.plan.TestID == "" {
				s.plan.TestID = results.NewTestID(s.out, time.Now())
			}
			if s.plan.BackendURL, err = plan.NormalURLs("BACKEND_URL", s.plan.BackendURL); err != nil {
				return usageError{err}
			}
			if err := s.checkBackends(); err != nil {
				return usageError{err}
			}
			if s.plan.Prefix == "" {
				s.plan.Prefix = "soak-"
			}
			if s.plan.ConnectionsPerVU == 0 {
				s.plan.ConnectionsPerVU = s.plan.Density()
			}
			if s.plan.MaxOutageS == 0 {
				return usageError{errors.New("MAX_OUTAGE is 0: to connect takes some time, so write the longest time without a stream in seconds, or -1 for any")}
			}
			if err := s.plan.Check(); err != nil {
				return usageError{err}
			}
			s.plan.EndTimeoutS = s.plan.EndTimeout().Seconds()
			s.plan.RunID = shard.NewProcess()
			start, ok := map[string]func(context.Context, settings, io.Writer) (verdict.Outcome, error){"local": soak, "k8s": soakOnCluster}[s.on]
			if !ok {
				return usageError{fmt.Errorf("--on is %q: a soak runs on local or k8s", s.on)}
			}
			v, err := start(cmd.Context(), s, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			*outcome = v
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&s.plan.Connections, "connections", s.plan.Connections, "streams to hold")
	f.IntVar(&s.plan.Seconds, "seconds", s.plan.Seconds, "length of the run in seconds; streams are ended 5 s before its end")
	f.Float64Var(&s.plan.NoopInterval, "noop-interval", s.plan.NoopInterval, "seconds between two noops of one stream")
	f.IntVar(&s.plan.Runners, "runners", s.plan.Runners, "k6 processes that share the streams")
	f.IntVar(&s.plan.ConnectionsPerVU, "connections-per-vu", s.plan.ConnectionsPerVU, "streams that one virtual user holds; 0: chosen by the number of streams, up to 50, and more beyond 5,000 streams per runner")
	f.StringVar(&s.plan.BackendURL, "backend-url", "", "URL of the service to soak, or several with commas between: each runner takes the next one; empty: start backend and nginx here")
	f.StringVar(&s.plan.Prefix, "prefix", "", "prefix of the device ids: PREFIX0, PREFIX1 and so on (default \"soak-\")")
	f.StringVar(&s.plan.TestID, "testid", "", "name of the run and of its folder (default: the time, UTC)")
	f.IntVar(&s.plan.LateMS, "late-ms", s.plan.LateMS, "a noop that is later than this many milliseconds counts as late")
	f.IntVar(&s.plan.MaxLate, "max-late", s.plan.MaxLate, "how many noops may be late; -1: any number")
	f.BoolVar(&s.plan.Reconnect, "reconnect", false, "clients reconnect and resume by Last-Event-ID")
	f.IntVar(&s.plan.MaxHidden, "max-hidden", s.plan.MaxHidden, "how many noops may have gone missing unnoticed before the run is invalid; -1: none, or any number where the service neither numbers its noops nor keeps a ledger")
	f.Float64Var(&s.plan.MaxOutageS, "max-outage", s.plan.MaxOutageS, "with --reconnect: for how many seconds a connection may be without a stream; -1: any")
	f.Float64Var(&s.plan.EndTimeoutS, "end-timeout", 0, "seconds that a stream may take to end after the server answered the DELETE (default: 15 or 1.5 intervals, whichever is longer)")
	f.StringVar(&s.out, "out", "results", "folder of all runs; this one gets a folder in it")
	f.StringVar(&s.shards, "shards", "", "where runners leave shards: a folder or s3://BUCKET/PREFIX; this run gets a folder named TESTID in it (default: the folder of the run)")
	f.StringVar(&s.runner, "runner", "", "run only the Kth of N runners on this machine, written K/N; the others run elsewhere (needs --testid and --backend-url)")
	f.StringVar(&startAt, "start-at", "", "when to start, for machines that start together: HH:MM[:SS] in UTC, or RFC 3339")
	f.StringVar(&s.script, "script", "", "k6 script (default: load-tests/sse/connectionTest.js)")
	f.IntVar(&s.backends, "backends", 1, "how many backends to start here, for more streams than one process holds; each runner uses one")
	f.BoolVar(&s.noNginx, "no-nginx", false, "connect to the local backend directly, even where nginx is installed")
	f.StringVar(&s.on, "on", "local", "where the runners run: local, or k8s (docs/kubernetes.md)")
	s.cluster.flags(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if name, ok := variables[flag.Name]; ok {
			flag.Usage += " [" + name + "]"
		}
	})
	cmd.AddCommand(suiteCommands(outcome)...)
	return cmd
}

func (s *settings) checkBackends() error {
	switch {
	case s.backends < 1 || s.backends > s.plan.Runners:
		return fmt.Errorf("--backends is %d for %d runners: each runner goes to one backend, so write 1 to %[2]d", s.backends, s.plan.Runners)
	case s.backends > 1 && s.plan.BackendURL != "":
		return errors.New("--backends starts backends here, but BACKEND_URL names others: leave one of them out")
	}
	return nil
}

// fromEnvironment sets each flag that was not given from its variable.
func fromEnvironment(flags *pflag.FlagSet) error { return fromVariables(flags, variables) }

func wanted(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "float64":
		return "a number"
	case "bool":
		return "1 or 0"
	case "duration":
		return "a duration, such as 90s or 10m"
	}
	return "of type " + kind
}

// beside finds a program or a file of this repository: beside the binary (bin/), in the
// folder above it, or in the working directory.
func beside(elements ...string) (string, error) {
	name := filepath.Join(elements...)
	var places []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		places = append(places, filepath.Dir(exe), filepath.Dir(filepath.Dir(exe)))
	}
	places = append(places, ".", "bin")
	for _, p := range places {
		path := filepath.Join(p, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%s was not found beside %s: `make build` makes it", name, strconv.Quote(os.Args[0]))
}
