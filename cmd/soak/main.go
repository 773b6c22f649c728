// Command soak checks that a service keeps streams of Server-Sent Events open without losing a message. It plans a run,
// starts the target and the runners, merges the shards and judges the run.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // for systems without CA certificates, such as container images

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// exitUsage is the exit code for wrong usage (EX_USAGE in sysexits.h).
const exitUsage = 64

// A usageError is an error in the usage of a command. Its text states the rule or the remedy.
type usageError = run.UsageError

func main() {
	os.Exit(execute(os.Args[1:]))
}

func execute(args []string) int {
	outcome := verdict.Pass
	root := &cobra.Command{
		Use:           "soak",
		Short:         "Check that a service delivers every message of its event streams",
		Long:          "soak checks that a service delivers every message of its Server-Sent Events (SSE) streams.\n\n" + exitCodes,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{Err: explainFlagError(cmd, err)} })
	root.AddCommand(commands(&outcome)...)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages |", fmt.Sprintf("FlagUsagesWrapped %d |", helpWidth)))
	wrapHelp(root)
	root.SetArgs(args)
	surviveClosedPipes()
	output := &lossyOutput{Writer: os.Stdout}
	root.SetOut(format.NewEscaper(output))
	cmd, err := root.ExecuteC()
	if err == nil && outcome == verdict.Pass { // any other outcome has its own exit code
		err = output.err
	}
	err = secret.Error(err)
	var usage usageError
	switch {
	case err == nil:
		return outcome.ExitCode()
	case errors.As(err, &usage), isUnknownCommand(err):
		fmt.Fprintf(format.NewEscaper(os.Stderr), "soak: %v\n%s\n", err, hint(cmd))
		return exitUsage
	}
	fmt.Fprintf(format.NewEscaper(os.Stderr), "soak: %v\n", err)
	return verdict.Invalid.ExitCode()
}

// commands returns all commands. Commands with a verdict set outcome.
func commands(outcome *verdict.Outcome) []*cobra.Command {
	return []*cobra.Command{
		runCommand(outcome), attachCommand(outcome), liveCommand(), controlCommand(), mergeCommand(outcome), reportCommand(),
		planCommand(), doctorCommand(outcome), probeCommand(), initCommand(), compareCommand(outcome), historyCommand(),
		archiveCommand(), openCommand(), scriptsCommand(), manCommand(), versionCommand(),
	}
}

func hint(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "`soak --help` lists the commands"
	}
	return fmt.Sprintf("`%s --help` describes its flags", cmd.CommandPath())
}

// explainFlagError states the rule for an invalid value, and suggests the nearest name for an unknown flag.
func explainFlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s must be %s, got %q", invalid.GetFlag().Name, plan.Kind(invalid.GetFlag().Value), invalid.GetValue())
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		return suggestName(err, "--", cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names) // pflag reads -connections as short flags
	}
	return err
}

// suggestName adds a suggestion to err: prefix, followed by the closest of names. If no name is close, it returns err.
func suggestName(err error, prefix, name string, names []string) error {
	if suggestion := service.Nearest(name, names); suggestion != "" {
		return fmt.Errorf("%w; did you mean %s%s?", err, prefix, suggestion)
	}
	return err
}

func oneArg(noun string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{Err: fmt.Errorf("name one %s", noun)}
		}
		return nil
	}
}

// noArgs rejects arguments. After --live, its error suggests --live=ADDRESS, because the argument may be the address.
// For a URL it suggests --backend-url, if the command has that flag.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	live := cmd.Flags().Lookup("live")
	switch {
	case live != nil && live.Changed:
		return usageError{Err: fmt.Errorf("unexpected argument %q; to show the run at this address, pass --live=%[1]s", args[0])}
	case urlArgument.MatchString(args[0]) && cmd.Flags().Lookup("backend-url") != nil:
		_, base := urlOf(args[0])
		return usageError{Err: fmt.Errorf("unexpected argument %q; pass the URL of the service as --backend-url %s", args[0], base)}
	}
	return usageError{Err: fmt.Errorf("unexpected argument %q: settings are flags or environment variables", args[0])}
}

// runArgs rejects arguments of `soak run`. Its error suggests a command for a URL, or the nearest suite.
func runArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.Flags().Lookup("live").Changed {
		return noArgs(cmd, args)
	}
	if urlArgument.MatchString(args[0]) {
		full, base := urlOf(args[0])
		return usageError{Err: fmt.Errorf("unexpected argument %q; run `soak init %s` to describe the service, then `soak run`; for the noop protocol pass --backend-url %s", args[0], full, base)}
	}
	var suites []string
	for _, sub := range cmd.Commands() {
		suites = append(suites, sub.Name())
	}
	return usageError{Err: suggestName(fmt.Errorf("unexpected argument %q: no such suite", args[0]), "", args[0], suites)}
}

// urlArgument matches an argument that may be a URL: with a scheme, as HOST:PORT, or as a host with dots and a path.
var urlArgument = regexp.MustCompile(`^([A-Za-z]+://|[\w.-]+:[0-9]+(/|$)|[\w-]+(\.[\w-]+)+/)`)

// urlOf returns the URL of an argument, in quotes if a shell needs them, and the URL without its query. If the argument
// has no scheme, the scheme is https, or http for a loopback address.
func urlOf(arg string) (full, base string) {
	full = arg
	if !strings.Contains(arg, "://") {
		full = "https://" + arg
		if plan.OnLoopback("http://" + arg) {
			full = "http://" + arg
		}
	}
	base, _, hasQuery := strings.Cut(full, "?")
	if hasQuery {
		full = "'" + full + "'"
	}
	return full, base
}

// isUnknownCommand reports whether err is cobra's error for an unknown command, which has no type of its own.
func isUnknownCommand(err error) bool { return strings.HasPrefix(err.Error(), "unknown command") }
