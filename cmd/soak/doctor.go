package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func doctorCommand(outcome *verdict.Outcome) *cobra.Command {
	c := configOf(suite.Default())
	p := &c.Plan
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a run can start on this machine and can reach the service",
		Long: "doctor checks the limits, clock and programs of this machine for a run with these settings, and shows how to fix each problem.\n" +
			"With --backend-url, it opens one stream to the service (noop protocol: to each URL). A missing program is a problem only if every run with these settings\n" +
			"needs it. Like a run, doctor reads " + plan.SettingsFile + ".\n\n" +
			"Exit codes: 0 a run can start, 2 it cannot, 64 wrong usage.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := loadSettings(cmd.Flags()); err != nil {
				return err
			}
			if p.Connections < 1 || p.Runners < 1 || c.Backends < 1 {
				return usageError{Err: fmt.Errorf("CONNECTIONS, RUNNERS and --backends must be at least 1, got %d, %d and %d", p.Connections, p.Runners, c.Backends)}
			}
			if p.ConnectionsPerVU == 0 {
				p.ConnectionsPerVU = p.StreamsPerVU()
			}
			services := preflight.Services{Count: c.Backends, Local: true, Proxied: !c.NoNginx}
			if p.BackendURL != "" {
				services = preflight.Services{Count: len(p.BackendURLs())}
			}
			ctx, stop := run.UntilSignal(cmd.Context())
			defer stop()
			findings := preflight.Inspect(ctx, *p, services, repositoryPrograms(p.BackendURL == ""))
			if p.BackendURL != "" {
				finding, err := tryTarget(ctx, c)
				if err != nil {
					return err
				}
				findings = append(findings, finding)
			}
			if ctx.Err() != nil {
				return errors.New("interrupted before the end of the checks")
			}
			if !preflight.CanStart(findings) {
				*outcome = verdict.Invalid
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), findings)
			}
			return printFindings(cmd.OutOrStdout(), findings)
		},
	}
	f := cmd.Flags()
	plan.AddFlags(f, slices.DeleteFunc(append(p.Settings(), c.Local.Settings()...), func(s plan.Setting) bool { return !slices.Contains(relevantSettings, s.Name) }))
	f.IntVar(&c.Backends, "backends", 1, "number of backends that the run will start here")
	f.BoolVar(&c.NoNginx, "no-nginx", false, "assume a run that connects to the local backend directly, without nginx")
	f.String("config", plan.SettingsFile, "file of settings, overridden by variables and flags; the default may be absent")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// relevantSettings names the settings of package plan on which the findings depend. doctor has no flags for the others.
var relevantSettings = []string{
	"CONNECTIONS", "RUNNERS", "CONNECTIONS_PER_VU", "BACKEND_URL", "HTTP_VERSION", "STREAMS_PER_CONNECTION",
	"SERVICE", "TOPIC", "TOPICS", "PUBLISH_RATE", "NOOP_INTERVAL", "CA", "INSECURE", "FOLLOW_REDIRECTS", "ACCEPT_ENCODING",
}

// tryTarget opens one stream of the service; with the noop protocol, one at each URL. Only wrong usage is an error;
// other failures are in the finding.
func tryTarget(ctx context.Context, c run.Config) (preflight.Finding, error) {
	f := preflight.Finding{Group: "service", Name: "stream", State: preflight.OK, Result: "opened at " + c.Plan.BackendURL}
	c.Stdout = io.Discard
	err := run.Try(ctx, c)
	var usage usageError
	if errors.As(err, &usage) {
		return f, err
	}
	if err != nil {
		f.State, f.Result = preflight.Broken, err.Error()
	}
	return f, nil
}

func repositoryPrograms(needsBackend bool) []preflight.Program {
	return []preflight.Program{
		{Name: "k6", Find: func() (string, error) { return run.Program("k6") }, Version: []string{"version"}, Consequence: "nothing can be run", Needed: true, Remedy: "run make build, or use the archive of a release (docs/getting-started.md)"},
		{Name: "backend", Find: func() (string, error) { return run.Program("backend") }, Version: []string{"--version"}, Consequence: "no local service", Needed: needsBackend, Remedy: "run make build, or set BACKEND_URL to the URL of a service"},
	}
}

var marks = map[preflight.State]string{preflight.OK: "ok", preflight.Absent: "–", preflight.Warning: "warning", preflight.Broken: "BROKEN"}

func printFindings(w io.Writer, findings []preflight.Finding) error {
	group := ""
	count := map[preflight.State]int{}
	for _, f := range findings {
		if f.Group != group {
			group = f.Group
			fmt.Fprintln(w, group)
		}
		fmt.Fprintf(w, "  %-8s %-23s %s\n", marks[f.State], f.Name, f.Result)
		if f.State != preflight.OK && f.Remedy != "" {
			fmt.Fprintf(w, "  %-8s %-23s → %s\n", "", "", f.Remedy)
		}
		count[f.State]++
	}
	conclusion := "A run can start"
	if count[preflight.Broken] > 0 {
		conclusion = fmt.Sprintf("A run cannot start; fix each item marked BROKEN (%d)", count[preflight.Broken])
	}
	_, err := fmt.Fprintf(w, "\n%s; %s; %s missing, failing or unknown, which does not prevent a run.\n", conclusion, format.Count(count[preflight.Warning], "warning"),
		format.Plural(count[preflight.Absent], "item is", "items are"))
	return err //nolint:wrapcheck // the error names standard output
}
