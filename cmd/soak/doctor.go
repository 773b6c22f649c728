package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/preflight"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func doctorCommand(outcome *verdict.Outcome) *cobra.Command {
	p := plan.Default()
	p.ConnectionsPerVU = 0
	var backends int
	var noNginx, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at this machine as a run would: limits, clock, programs, and what mends them",
		Long: "doctor starts nothing and loads nobody. It says what a run with these settings would find wrong with this machine, and the\n" +
			"command that mends it. What only some runs need is absent, not wrong. Like a run it reads " + plan.SettingsFile + " where that is.\n\n" +
			"Exit codes: 0 a run can begin, 2 it cannot, 64 wrong usage.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := settle(cmd.Flags()); err != nil {
				return err
			}
			if p.Connections < 1 || p.Runners < 1 || backends < 1 {
				return usageError{Err: errors.New("CONNECTIONS, RUNNERS and --backends must be 1 at least")}
			}
			if p.ConnectionsPerVU == 0 {
				p.ConnectionsPerVU = p.Density()
			}
			s := preflight.Services{Count: backends, Here: true, Proxied: !noNginx}
			if p.BackendURL != "" {
				s = preflight.Services{Count: len(p.BackendURLs())}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			found := preflight.Inspect(ctx, p, s, ownPrograms(p.BackendURL == ""))
			if !preflight.Fit(found) {
				*outcome = verdict.Invalid
			}
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(found) //nolint:wrapcheck // of standard output
			}
			return printFindings(cmd.OutOrStdout(), found)
		},
	}
	f := cmd.Flags()
	plan.AddFlags(f, slices.DeleteFunc(p.Settings(), func(s plan.Setting) bool { return !slices.Contains(looked, s.Name) }))
	f.IntVar(&backends, "backends", 1, "how many backends the run would start here")
	f.BoolVar(&noNginx, "no-nginx", false, "the run would connect to the local backend directly")
	f.String("config", plan.SettingsFile, "file of the run's settings, which flags and variables win over; the default is read where it is there")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// looked are the settings on which it depends what a machine has to offer.
var looked = []string{"CONNECTIONS", "RUNNERS", "CONNECTIONS_PER_VU", "BACKEND_URL", "HTTP_VERSION", "STREAMS_PER_CONNECTION"}

// ownPrograms are those of this repository.
func ownPrograms(own bool) []preflight.Program {
	return []preflight.Program{
		{Name: "k6", Find: func() (string, error) { return run.Program("k6") }, Version: []string{"version"}, For: "nothing can be run", Needed: true, Mend: "make build, or the archive of a release (docs/getting-started.md)"},
		{Name: "backend", Find: func() (string, error) { return run.Program("backend") }, Version: []string{"--version"}, For: "there is no service to try out here", Needed: own, Mend: "make build, or name a service by BACKEND_URL"},
	}
}

// marks are what a line begins with.
var marks = map[preflight.State]string{preflight.OK: "ok", preflight.Absent: "–", preflight.Warning: "warning", preflight.Broken: "BROKEN"}

// printFindings prints a line for each, and below it what mends it.
func printFindings(w io.Writer, found []preflight.Finding) error {
	about := ""
	count := map[preflight.State]int{}
	for _, f := range found {
		if f.About != about {
			about = f.About
			fmt.Fprintln(w, about)
		}
		fmt.Fprintf(w, "  %-8s %-23s %s\n", marks[f.State], f.Name, f.Found)
		if f.State != preflight.OK && f.Mend != "" {
			fmt.Fprintf(w, "  %-8s %-23s → %s\n", "", "", f.Mend)
		}
		count[f.State]++
	}
	verdict := "A run can begin"
	if count[preflight.Broken] > 0 {
		verdict = fmt.Sprintf("A run cannot start; fix what is BROKEN (%d)", count[preflight.Broken])
	}
	_, err := fmt.Fprintf(w, "\n%s; %s, %d absent that only some runs need.\n", verdict, format.Count(count[preflight.Warning], "warning"), count[preflight.Absent])
	return err //nolint:wrapcheck // of standard output
}
