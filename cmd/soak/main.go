// Command soak proves, or disproves, that a service keeps Server-Sent-Event streams alive
// without losing a message: it plans a run, starts target and runners, merges what they saw
// and judges it.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // where the system has no certificates of authorities: an image without one

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// exitUsage is the exit code for a command that could not be understood (sysexits.h EX_USAGE).
const exitUsage = 64

// usageError is wrong usage; its sentence says what would be right.
type usageError = run.UsageError

func main() {
	os.Exit(execute(os.Args[1:]))
}

func execute(args []string) int {
	outcome := verdict.Pass
	root := &cobra.Command{
		Use:           "soak",
		Short:         "Hold SSE connections for hours and account for every message",
		Long:          "soak holds many Server-Sent-Event streams for a long time and accounts for every noop on each.\n\nExit codes: 0 pass, 1 fail, 2 invalid (incomplete, or it could not run), 64 wrong usage.",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{Err: inWords(err)} })
	root.AddCommand(runCommand(&outcome), attachCommand(&outcome), liveCommand(), controlCommand(), mergeCommand(&outcome), reportCommand(), planCommand(), doctorCommand(&outcome), probeCommand(), initCommand(), compareCommand(&outcome), historyCommand(), archiveCommand(), openCommand(), scriptsCommand(), manCommand())
	root.SetArgs(args)
	surviveClosedPipes()
	root.SetOut(format.Escaping(departing{os.Stdout}))
	err := secret.Error(root.Execute())
	var usage usageError
	switch {
	case err == nil:
		return outcome.ExitCode()
	case errors.As(err, &usage), isCobraUsage(err):
		fmt.Fprintf(format.Escaping(os.Stderr), "soak: %v\n`soak --help` lists the commands, `soak run --help` the settings.\n", err)
		return exitUsage
	}
	fmt.Fprintf(format.Escaping(os.Stderr), "soak: %v\n", err)
	return verdict.Invalid.ExitCode()
}

// inWords says what a flag's value must be; the parser's own words are those of strconv.
func inWords(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("--%s is %q: it must be %s", wrong.GetFlag().Name, wrong.GetValue(), plan.Kind(wrong.GetFlag().Value.Type()))
}

// noArgs and oneArg are cobra's checks as usage errors.
func oneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{Err: fmt.Errorf("name one %s", what)}
		}
		return nil
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if live := cmd.Flags().Lookup("live"); len(args) > 0 && live != nil && live.Changed {
		return usageError{Err: fmt.Errorf("unexpected argument %q: an address to show the run at is written --live=%[1]s", args[0])}
	}
	if len(args) > 0 {
		return usageError{Err: fmt.Errorf("unexpected argument %q: settings are flags or environment variables", args[0])}
	}
	return nil
}

// isCobraUsage recognizes an unknown command, for which cobra has no type.
func isCobraUsage(err error) bool {
	const unknown = "unknown command"
	return len(err.Error()) > len(unknown) && err.Error()[:len(unknown)] == unknown
}
