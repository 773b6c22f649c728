package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the maximum length of a line of a help text, except for indented lines.
const helpWidth = 100

type helpGroup struct {
	heading string
	flags   []string
}

// commonFlags are the flags of a run that --help shows, in addition to the flags of its suite.
var commonFlags = []helpGroup{
	{"The service", []string{"backend-url", "cluster-url", "service", "topic"}},
	{"The load", []string{"connections", "seconds", "noop-interval", "topics", "publish-rate", "runners", "reconnect"}},
	{"The verdict", []string{"require-messages"}},
	{"During the run", []string{"at", "live"}},
	{"Results", []string{"out"}},
}

// allFlags lists the flags of a run by topic. The help shows a flag that is not in the list as a setting of the suite.
var allFlags = []helpGroup{
	{"The service", []string{"backend-url", "service", "topic", "ca", "insecure", "follow-redirects", "accept-encoding", "http-version",
		"streams-per-connection", "token-ttl", "backends", "no-nginx", "cluster-url", "pin"}},
	{"The load", []string{"connections", "seconds", "noop-interval", "topics", "publish-rate", "runners", "reconnect",
		"connections-per-vu", "prefix", "end-timeout", "script"}},
	{"The verdict", []string{"require-messages", "late-ms", "max-late", "max-hidden", "min-coverage", "max-memory-slope",
		"max-lateness-slope", "max-reconnect-slope", "max-connect-slope", "max-outage", "back-within", "control", "control-url"}},
	{"During the run", []string{"at", "at-env", "allow-actions", "live", "progress"}},
	{"Results", []string{"out", "testid", "config", "verbose", "window", "github", "junit"}},
	{"Several machines", []string{"runner", "continue", "shards", "start-at", "control-listen"}},
	{"Kubernetes", []string{"on", "overlay", "backend-via", "kube-context", "start-timeout", "keep"}},
}

// addRunHelp makes --help of a run show the common flags, and --help-all every flag by topic.
func addRunHelp(cmd *cobra.Command, example string) {
	cmd.Example = example
	all := cmd.Flags().Bool("help-all", false, "show all settings in groups")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *all {
			return runHelp(cmd, allFlags)
		}
		return run(cmd, args)
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _ = runHelp(cmd, commonFlags) }) // ignores output errors
}

func runHelp(cmd *cobra.Command, groups []helpGroup) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n\nExample:\n%s\n", wrap(cmd.Long, helpWidth), cmd.UseLine(), cmd.Example)
	if flags := suiteFlags(cmd); flags.HasFlags() {
		fmt.Fprintf(&b, "\nThe suite\n%s", flags.FlagUsagesWrapped(helpWidth))
	}
	for _, g := range groups {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.SortFlags = false
		for _, name := range g.flags {
			if flag := cmd.Flags().Lookup(name); flag != nil {
				flags.AddFlag(flag)
			}
		}
		if flags.HasFlags() {
			fmt.Fprintf(&b, "\n%s\n%s", g.heading, flags.FlagUsagesWrapped(helpWidth))
		}
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nSuites\n")
		for _, sub := range cmd.Commands() {
			fmt.Fprintf(&b, "  %-12s%s\n", sub.Name(), strings.ReplaceAll(wrap(sub.Short, helpWidth-14), "\n", "\n"+strings.Repeat(" ", 14)))
		}
	}
	if len(groups) < len(allFlags) {
		fmt.Fprintf(&b, "\n%s --help-all shows all settings in groups.\n", cmd.CommandPath())
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err //nolint:wrapcheck // of standard output
}

func suiteFlags(cmd *cobra.Command) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		grouped := slices.ContainsFunc(allFlags, func(g helpGroup) bool { return slices.Contains(g.flags, flag.Name) })
		if !grouped && flag.Name != "help" && flag.Name != "help-all" {
			flags.AddFlag(flag)
		}
	})
	return flags
}

// wrap breaks each paragraph into lines of at most width bytes, or one longer word. Indented lines remain unchanged.
func wrap(text string, width int) string {
	var out []string
	line := ""
	endLine := func() {
		if line != "" {
			out = append(out, line)
		}
		line = ""
	}
	for input := range strings.SplitSeq(text, "\n") {
		if input == "" || strings.HasPrefix(input, " ") {
			endLine()
			out = append(out, input)
			continue
		}
		for word := range strings.FieldsSeq(input) {
			if line != "" && len(line)+1+len(word) > width {
				endLine()
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
	}
	endLine()
	return strings.Join(out, "\n")
}

func wrapHelp(cmd *cobra.Command) {
	cmd.Long = wrap(cmd.Long, helpWidth)
	for _, sub := range cmd.Commands() {
		wrapHelp(sub)
	}
}
