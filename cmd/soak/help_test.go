package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

var update = flag.Bool("update", false, "write the golden files")

// The output of --help is documentation, so each change to it must be intended.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"run --help", "run capacity --help", "run rampup --help", "run storm --help", "run --help-all", "merge --help", "history --help"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			out, _, err := soak(t, strings.Fields(line)...)
			require.NoError(t, err)
			golden := filepath.Join("testdata", "help", strings.NewReplacer(" --help-", "-", " --help", "", " ", "-").Replace(line)+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, []byte(out), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "create the golden file with: go test ./cmd/soak -update")
			require.Equal(t, string(want), out)
			for text := range strings.Lines(out) {
				require.True(t, len(text) <= helpWidth+1 || !strings.HasPrefix(line, "run "), "a line has over %d bytes: %s", helpWidth, text)
			}
		})
	}
}

// The limit of 80 characters includes neither the default nor the variable. It does not apply to --profile, which lists
// settings.
func TestHelpOfAFlagIsShort(t *testing.T) {
	t.Parallel()
	excluded := regexp.MustCompile(`( \(default: [^)]*\))?( \[[A-Z0-9_]+\])?$`)
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.HasPrefix(f.Usage, profileHelp) {
				require.LessOrEqual(t, utf8.RuneCountInString(excluded.ReplaceAllString(f.Usage, "")), 80, "%s --%s: %s", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	for _, cmd := range commands(new(verdict.Outcome)) {
		check(cmd)
	}
}

// Each flag of a run is in one group, except the flags of a suite.
func TestHelpAllHasEverySetting(t *testing.T) {
	t.Parallel()
	var outcome verdict.Outcome
	run := runCommand(&outcome)
	require.False(t, suiteFlags(run).HasFlags(), suiteFlags(run).FlagUsages())
	names := map[string]bool{}
	for _, g := range allFlags {
		for _, name := range g.flags {
			require.False(t, names[name], "%s is in two groups", name)
			names[name] = true
			require.True(t, name == "cluster-url" || run.Flags().Lookup(name) != nil, "%s must be a flag", name)
		}
	}
	for _, g := range commonFlags {
		for _, name := range g.flags {
			require.True(t, names[name], "%s must be in a group of allFlags", name)
		}
	}
}
