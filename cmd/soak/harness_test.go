package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// soak runs a command in the process of the test. It returns the output, the exit code of the verdict, and the error.
func soak(t *testing.T, args ...string) (output string, code int, err error) {
	t.Helper()
	return soakWithInput(t, nil, args...)
}

// soakWithInput is soak with a standard input.
func soakWithInput(t *testing.T, input io.Reader, args ...string) (output string, code int, err error) {
	t.Helper()
	outcome := verdict.Pass
	var out bytes.Buffer
	root := &cobra.Command{Use: "soak", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(commands(&outcome)...)
	root.SetArgs(args)
	root.SetIn(input)
	root.SetOut(&out)
	root.SetErr(&out)
	err = root.Execute()
	return out.String(), outcome.ExitCode(), err
}
