package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What --help says is documentation: it changes when somebody means it to.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"run --help", "run capacity --help", "run rampup --help", "run storm --help", "merge --help", "history --help"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var outcome verdict.Outcome
			var out bytes.Buffer
			soak := &cobra.Command{Use: "soak"}
			soak.AddCommand(runCommand(&outcome), mergeCommand(&outcome), historyCommand())
			soak.SetArgs(strings.Fields(line))
			soak.SetOut(&out)
			require.NoError(t, soak.Execute())
			golden := filepath.Join("testdata", "help", strings.ReplaceAll(strings.TrimSuffix(line, " --help"), " ", "-")+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "go test ./cmd/soak -update writes it")
			require.Equal(t, string(want), out.String())
		})
	}
}
