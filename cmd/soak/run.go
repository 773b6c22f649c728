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

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// settings are the flags of `soak run`.
type settings struct {
	plan plan.Plan
	plan.Local
	script   string
	noNginx  bool
	backends int       // to start here
	runner   string    // "K/N": this machine's part of a run on several
	part     int       // K; 0: the whole run
	startAt  time.Time // zero: at once
	cluster  clusterSettings
}

func runCommand(outcome *verdict.Outcome) *cobra.Command {
	s := settings{plan: plan.Default(), Local: plan.DefaultLocal()}
	s.plan.ConnectionsPerVU = 0 // chosen below
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
			if err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{err}
			}
			if err := s.parsePart(); err != nil {
				return usageError{err}
			}
			var err error
			if s.startAt, err = parseStart(s.StartAt, time.Now()); err != nil {
				return usageError{err}
			}
			if s.plan.TestID == "" {
				s.plan.TestID = results.NewTestID(s.Out, time.Now())
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
			start, ok := map[string]func(context.Context, settings, io.Writer) (verdict.Outcome, error){"local": soak, "k8s": soakOnCluster}[s.On]
			if !ok {
				return usageError{fmt.Errorf("--on is %q: a soak runs on local or k8s", s.On)}
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
	plan.AddFlags(f, append(s.plan.Settings(), s.Local.Settings()...))
	f.StringVar(&s.runner, "runner", "", "run only the Kth of N runners on this machine, written K/N; the others run elsewhere (needs --testid and --backend-url)")
	f.StringVar(&s.script, "script", "", "k6 script (default: load-tests/sse/connectionTest.js)")
	f.IntVar(&s.backends, "backends", 1, "how many backends to start here, for more streams than one process holds; each runner uses one")
	f.BoolVar(&s.noNginx, "no-nginx", false, "connect to the local backend directly, even where nginx is installed")
	s.cluster.flags(f)
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
