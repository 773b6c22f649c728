package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func runCommand(outcome *verdict.Outcome) *cobra.Command {
	c := configOf(suite.Default())
	cmd := &cobra.Command{
		Use:   "run [SUITE]",
		Short: "Run a soak and judge it",
		Long: "run opens streams to a service, checks that every message arrives, and reports a verdict. Without --backend-url, it starts\n" +
			"the backend of this project on this machine. The backend sends noops: numbered messages at a fixed interval. `soak init URL` writes the description and the settings for your own service.\n\n" +
			"Pass each setting as a flag, as the environment variable in brackets, or as a key of soak.yaml. A setting\n" +
			"without brackets has no variable. Tokens are read from the\n" +
			"environment only: BACKEND_TOKEN, SUBSCRIBE_TOKEN, PUBLISH_TOKEN (docs/services.md). So is PROMETHEUS_URL (docs/report.md).\n\n" +
			exitCodes,
		Args: runArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return start(cmd, &c, nil, outcome) },
	}
	f := cmd.Flags()
	soakFlags(f, &c)
	f.StringVar(&c.Script, "script", "", "k6 script (default: load-tests/sse/connectionTest.js)")
	for _, kind := range suite.All() {
		cmd.AddCommand(suiteCommand(kind, outcome))
	}
	addRunHelp(cmd, "  soak run --connections 100 --seconds 60\n  soak run --service ./news.js --backend-url https://HOST --topics 4 --publish-rate 2")
	return cmd
}

// configOf returns the configuration of a run with the default plan of a suite.
func configOf(kind suite.Suite) run.Config {
	c := run.Config{Suite: kind, Plan: plan.Default(), Local: plan.DefaultLocal(), Backends: 1, Version: version(), Commit: commit()}
	c.Plan.ConnectionsPerVU = 0 // chosen later, from the number of streams
	if !kind.Plan.BySettings {
		c.Plan = plan.Plan{Runners: cmp.Or(kind.Runners.Default, 2), Control: c.Plan.Control}
	}
	return c
}

const exitCodes = "Exit codes: 0 pass, 1 fail, 2 invalid (cannot be judged), 64 wrong usage."

// soakFlags defines the flags of a run with the plan of a soak.
func soakFlags(f *pflag.FlagSet, c *run.Config) {
	plan.AddFlags(f, plan.ForSuite(c.Suite.InPlan(), append(c.Plan.Settings(), c.Local.Settings()...)))
	f.IntVar(&c.Backends, "backends", 1, "number of backends to start here; each runner uses one")
	f.BoolVar(&c.NoNginx, "no-nginx", c.Suite.Target.Kind == suite.Direct, "connect to the local backend directly, without nginx")
	sessionFlags(f, c)
	outputFlags(f, &c.CI, &c.Terminal)
}

// outputFlags defines the flags for output. It also enables colors on a terminal, unless NO_COLOR is set.
func outputFlags(f *pflag.FlagSet, systems *ci.Systems, options *report.TerminalOptions) {
	f.BoolVar(&options.Verbose, "verbose", false, "print the whole report.txt")
	options.Color = term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
	f.BoolVar(&systems.GitHub, "github", false, "GitHub Actions: write annotations, step summary and outputs (docs/ci.md)")
	f.StringVar(&systems.JUnit, "junit", "", "file to write the checks to, in JUnit format (docs/ci.md)")
}

const profileHelp = "smoke (a short run) or full (the default)"

func suiteCommand(kind suite.Suite, outcome *verdict.Outcome) *cobra.Command {
	c := configOf(kind)
	settings := []plan.Setting{{Name: "PROFILE", Value: new(string), Help: profileHelp}}
	for _, setting := range kind.Settings() {
		settings = append(settings, plan.Setting{Name: setting.Name, Value: new(string), Help: setting.Help})
	}
	origin := "The script " + strings.Join(kind.Script, "/") + " has the profiles smoke and full, with a default for each setting. A flag, the " +
		"environment variable in brackets, or a key of soak.yaml overrides the default. " + kind.Page.Doc + " describes how results are judged."
	if kind.Plan.BySettings {
		origin = "The suite has the settings of a soak, in addition to its own. The defaults are the values of the profile full:\n" +
			strings.Join(kind.Plan.Profiles["full"], " ") + ". The profile smoke has " + strings.Join(kind.Plan.Profiles["smoke"], " ") + ".\n" +
			kind.Page.Doc + " describes how results are judged."
	}
	short := strings.ToUpper(kind.Short[:1]) + kind.Short[1:]
	cmd := &cobra.Command{
		Use:   kind.Name,
		Short: short,
		Long:  short + ".\n\n" + origin + "\n\n" + exitCodes,
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return start(cmd, &c, settings, outcome) },
	}
	plan.AddFlags(cmd.Flags(), settings)
	if kind.Plan.BySettings {
		soakFlags(cmd.Flags(), &c)
	} else {
		declaredFlags(cmd.Flags(), &c)
	}
	for _, setting := range kind.Plan.Profiles["full"] {
		name, value, _ := strings.Cut(setting, "=")
		flagOf(cmd.Flags(), name).DefValue = value // for --help
	}
	addRunHelp(cmd, "  soak run "+kind.Name+" --profile smoke")
	return cmd
}

// declaredFlags defines the flags of a run whose script declares the plan.
func declaredFlags(f *pflag.FlagSet, c *run.Config) {
	f.SortFlags = false
	if c.Suite.Target.Kind == suite.Cluster {
		plan.AddFlags(f, []plan.Setting{{Name: "CLUSTER_URL", Value: &c.ClusterURL, Help: "URL of the cluster (empty: start CLUSTER_SIZE backends behind nginx here)"}})
	}
	plan.AddFlags(f, plan.SuiteSettings(append(c.Plan.Settings(), c.Local.Settings()...)))
	f.BoolVar(&c.NoNginx, "no-nginx", c.Suite.Target.Kind == suite.Direct, "connect to the local backend directly, without nginx")
	session := pflag.NewFlagSet("", pflag.ContinueOnError)
	plan.AddFlags(session, c.Local.Settings())
	sessionFlags(session, c)
	f.AddFlagSet(session) // omits flags that the suite already has
	outputFlags(f, &c.CI, &c.Terminal)
}

func flagOf(f *pflag.FlagSet, name string) *pflag.Flag {
	return f.Lookup(strings.ToLower(strings.ReplaceAll(name, "_", "-")))
}

// setProfile sets each flag of the profile that the user did not set.
func setProfile(f *pflag.FlagSet, kind suite.Suite, name string) error {
	values, ok := kind.Plan.Profiles[name]
	if !ok {
		return fmt.Errorf("PROFILE must be smoke or full, got %q", name)
	}
	for _, setting := range values {
		name, value, _ := strings.Cut(setting, "=")
		flag := flagOf(f, name)
		if flag.Changed {
			continue
		}
		if err := flag.Value.Set(value); err != nil {
			return fmt.Errorf("set %s of the profile: %w", setting, err)
		}
	}
	return nil
}

// sessionFlags defines the flags that are not settings of the plan: for the file of settings, and for runners on other
// machines.
func sessionFlags(f *pflag.FlagSet, c *run.Config) {
	f.String("config", plan.SettingsFile, "file of settings, overridden by variables and flags; the default may be absent")
	f.Bool(plan.AllowActions, false, "allow the at: commands in the soak.yaml of the working directory")
	f.StringVar(&c.Runner, "runner", "", "runner to start on this machine, as K/N; requires --testid and --backend-url")
	f.BoolVar(&c.Continue, "continue", false, "replace runner K/N, which was killed or interrupted, for the rest of the run")
	clusterFlags(f, &c.Kubernetes)
}

func clusterFlags(f *pflag.FlagSet, k *run.Kubernetes) {
	f.StringVar(&k.Via, "backend-via", "", "k8s: HOST[:PORT] of the service as seen from here (default: host of BACKEND_URL)")
	f.StringVar(&k.Context, "kube-context", "", "k8s: kubeconfig context (default: the current one)")
	k.StartTimeout = 10 * time.Minute
	f.Var((*durationFlag)(&k.StartTimeout), "start-timeout", "k8s: timeout for the initializer, the runners and the starter")
	f.BoolVar(&k.Keep, "keep", false, "k8s: keep TestRun and pods in the cluster after the run")
}

// A durationFlag is the value of a flag that accepts a duration such as 10m, or a number of seconds.
type durationFlag time.Duration

func (d *durationFlag) String() string { return time.Duration(*d).String() }

// Type returns the name of the type, which plan.Kind describes.
func (d *durationFlag) Type() string { return "duration" }

// Set parses text and sets the value.
func (d *durationFlag) Set(text string) error {
	seconds, err := plan.ParseNumber("SECONDS", text)
	if err == nil {
		*d = durationFlag(seconds * float64(time.Second))
	}
	return err //nolint:wrapcheck // the caller knows the flag
}

// loadSettings sets flags from variables and from the file of settings, unless they are on the command line. It returns
// the variables that it used, as NAME=value. file is the path of the file of settings, or "" without such a file.
func loadSettings(f *pflag.FlagSet) (variables []string, file string, err error) {
	variables, err = plan.FlagsFromEnvironment(f)
	if err != nil {
		return nil, "", usageError{Err: err}
	}
	config := f.Lookup("config")
	read, err := plan.FlagsFromFile(f, config.Value.String(), config.Changed, isRunFlag)
	var unknown plan.UnknownKeyError
	if errors.As(err, &unknown) {
		err = suggestName(err, "", string(unknown), runFlags())
	}
	if err != nil {
		return nil, "", usageError{Err: err}
	}
	if read {
		file = config.Value.String()
	}
	return variables, file, nil
}

func isRunFlag(name string) bool { return slices.Contains(runFlags(), name) }

// runFlags returns the names of the flags of `soak run` and of all suites.
func runFlags() (names []string) {
	run := runCommand(new(verdict.Outcome))
	for _, c := range append(run.Commands(), run) {
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	}
	return names
}

// start runs a suite. scriptSettings has the profile first, then the settings that the script reads and the plan lacks.
// It is nil for `soak run` without a suite.
func start(cmd *cobra.Command, c *run.Config, scriptSettings []plan.Setting, outcome *verdict.Outcome) (err error) {
	variables, file, err := loadSettings(cmd.Flags())
	if err != nil {
		return err
	}
	c.Variables = variables
	if c.Suite.Plan.Profiles != nil {
		if err := setProfile(cmd.Flags(), c.Suite, cmp.Or(scriptSettings[0].String(), "full")); err != nil {
			return usageError{Err: err}
		}
	}
	if file != "" {
		fmt.Fprintf(os.Stderr, "using the settings in %s\n", file)
	}
	if err := allowActions(cmd, c.At); err != nil {
		return usageError{Err: err}
	}
	c.Settings = map[string]string{}
	for _, setting := range scriptSettings {
		if cmd.Flags().Changed(setting.Flag()) {
			c.Settings[setting.Name] = setting.String()
		}
	}
	c.Stdout, c.OpenURL = cmd.OutOrStdout(), urlOpener(cmd.ErrOrStderr())
	c.Executable, _ = os.Executable() // "": the run continues without a control group
	*outcome, err = run.Run(cmd.Context(), *c)
	var usage usageError
	if errors.As(err, &usage) && len(variables) > 0 { // a user may not know that a variable such as PREFIX is a setting
		var names []string
		for _, variable := range variables {
			name, _, _ := strings.Cut(variable, "=")
			names = append(names, name)
		}
		return usageError{Err: fmt.Errorf("%w; check the settings from environment variables: %s", usage.Err, strings.Join(names, ", "))}
	}
	return err
}
