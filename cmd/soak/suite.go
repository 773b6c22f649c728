package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/target"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// suiteSettings are the flags of `soak run SUITE`.
type suiteSettings struct {
	suite.Suite
	plan plan.Plan
	plan.Local
	clusterURL string
	noNginx    bool
	env        []string // settings of the script, NAME=value

	noopInterval time.Duration       // of a suite that holds streams
	clusterSize  int                 // of one with a cluster
	certificates target.Certificates // of one with mutual TLS
}

// suiteCommands are the subcommands of run, one for each suite.
func suiteCommands(outcome *verdict.Outcome) (out []*cobra.Command) {
	for _, s := range suite.All() {
		out = append(out, suiteCommand(s, outcome))
	}
	return out
}

func suiteCommand(kind suite.Suite, outcome *verdict.Outcome) *cobra.Command {
	s := suiteSettings{Suite: kind, plan: plan.Plan{Suite: kind.Name, Runners: cmp.Or(kind.Runners, 2)}, Local: plan.DefaultLocal()}
	script := strings.Join(kind.Script, "/")
	var ofScript []plan.Setting
	cmd := &cobra.Command{
		Use:   kind.Name,
		Short: strings.ToUpper(kind.Short[:1]) + kind.Short[1:],
		Long: strings.ToUpper(kind.Short[:1]) + kind.Short[1:] + ".\n\n" +
			"The load is made by " + script + ", whose profile (smoke, full) has a default for each setting; a flag or\n" +
			"the environment variable in brackets changes it. " + cmp.Or(kind.Doc, "docs/http-suites.md") + " says how the figures are judged.\n\n" +
			"Exit codes: 0 pass, 1 fail, 2 invalid (incomplete, or it could not run), 64 wrong usage.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{err}
			}
			for _, setting := range ofScript {
				if cmd.Flags().Changed(setting.Flag()) {
					s.env = append(s.env, setting.Name+"="+setting.String())
				}
			}
			if err := s.normalURLs(); err != nil {
				return usageError{err}
			}
			if err := s.prepare(); err != nil {
				return err
			}
			if s.plan.TestID == "" {
				s.plan.TestID = results.NewTestID(s.Out, time.Now())
			}
			if err := s.plan.CheckDeclared(); err != nil {
				return usageError{err}
			}
			s.plan.RunID = shard.NewProcess()
			v, err := runSuite(cmd.Context(), s, cmd.OutOrStdout())
			var refused runners.ErrSettings
			if errors.As(err, &refused) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			*outcome = v
			return nil
		},
	}
	ofScript = s.addFlags(cmd.Flags())
	return cmd
}

// normalURLs brings the URLs into the form that everybody is given.
func (s *suiteSettings) normalURLs() (err error) {
	if s.plan.BackendURL != "" {
		if s.plan.BackendURL, err = plan.NormalURL("BACKEND_URL", s.plan.BackendURL); err != nil {
			return err
		}
	}
	if s.clusterURL != "" {
		s.clusterURL, err = plan.NormalURL("CLUSTER_URL", s.clusterURL)
	}
	return err
}

// addFlags adds a flag for each setting of the script, which it returns, and those that every suite has.
func (s *suiteSettings) addFlags(f *pflag.FlagSet) (ofScript []plan.Setting) {
	f.SortFlags = false
	for _, setting := range append([]suite.Setting{{Name: "PROFILE", Help: "smoke (at most 20 s) or full (the default)"}}, s.Suite.Settings...) {
		ofScript = append(ofScript, plan.Setting{Name: setting.Name, Value: new(string), Help: setting.Help})
	}
	plan.AddFlags(f, ofScript)
	if s.Cluster {
		plan.AddFlags(f, []plan.Setting{{Name: "CLUSTER_URL", Value: &s.clusterURL, Help: "the cluster to test beside it; empty: start CLUSTER_SIZE backends behind nginx here"}})
	}
	plan.AddFlags(f, plan.OfSuites(append(s.plan.Settings(), s.Local.Settings()...)))
	f.BoolVar(&s.noNginx, "no-nginx", false, "connect to the local backend directly, even where nginx is installed")
	return ofScript
}

// scriptEnv is what the script finds beside our own environment.
func (s *suiteSettings) scriptEnv(more map[string]string) []string {
	env := append([]string(nil), s.env...)
	if s.clusterURL != "" {
		env = append(env, "CLUSTER_URL="+s.clusterURL)
	}
	for name, value := range more {
		env = append(env, name+"="+value)
	}
	return env
}

// runSuite runs one suite. An error means that there is no verdict, and that nothing runs any more.
func runSuite(parent context.Context, settings suiteSettings, stdout io.Writer) (verdict.Outcome, error) {
	if parent == nil {
		parent = context.Background()
	}
	gentle, kill, stop := interrupts(parent)
	defer stop()
	k6, err := beside("k6")
	if err != nil {
		return "", err
	}
	script, err := beside(settings.Script...)
	if err != nil {
		return "", err
	}
	nowhere := settings.nowhere()
	needs, err := runners.Inspect(gentle, k6, script, append(nowhere, settings.scriptEnv(nil)...))
	if err != nil {
		return "", err
	}
	ses := newSuiteSession(settings, needs, stdout)
	if err := ses.check(); err != nil {
		return "", err
	}
	if ses.dir, err = results.Create(settings.Out, settings.plan.TestID); err != nil {
		return "", err
	}
	if err := ses.dir.Begin(0, results.NewManifest(0, ses.plan.RunID, ses.Streams && ses.plan.BackendURL == "")); err != nil {
		return "", err
	}
	defer func() { ses.both().Stop(kill) }()
	if err := ses.startTargets(gentle); err != nil {
		return "", err
	}
	if err := ses.dir.WriteJSON(results.PlanFile, ses.plan); err != nil {
		return "", err
	}
	ses.run.Backend = ses.target.Version(gentle)
	ses.announce(filepath.Base(script))
	if err := ses.rounds(gentle, kill, runners.Config{K6: k6, Script: script, Plan: ses.plan, Token: ses.target.Token}); err != nil {
		return "", err
	}
	return ses.conclude(kill)
}
