package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// What is wrong with the flags is found later than what is wrong with the variable.
func TestARunTakesItsVariables(t *testing.T) {
	t.Setenv("ON", "moon")
	for _, line := range []string{"run --late-ms 0", "run rampup --runners 0"} {
		var outcome verdict.Outcome
		soak := &cobra.Command{Use: "soak", SilenceErrors: true, SilenceUsage: true}
		soak.AddCommand(runCommand(&outcome))
		soak.SetArgs(strings.Fields(line))
		soak.SetOut(io.Discard)
		require.ErrorContains(t, soak.Execute(), `--on is "moon"`, line)
	}
}
