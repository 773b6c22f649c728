package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func attachCommand(outcome *verdict.Outcome) *cobra.Command {
	c := run.Config{Local: plan.DefaultLocal(), Version: version(), Commit: commit()}
	cmd := &cobra.Command{
		Use:   "attach TESTID",
		Short: "Follow a run whose soak process ended, and judge it",
		Long: "attach continues a `soak run` that was killed, on the same machine: it follows the runners to their end, replaces runners that\n" +
			"ended early, unless they published messages or ended with an error, and judges the run. This requires a run with\n" +
			"--backend-url and without a suite, --at or --runner: in all other runs on one machine, the runners end when soak ends.\n" +
			"attach also continues, on any machine, a `soak run --on k8s` that was killed or lost its connection to the cluster: it\n" +
			"follows the run to its end, collects the shards (the runners' files of results), judges the run and cleans up.\n\n" + exitCodes,
		Args: oneArg("run by its test id"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if _, err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{Err: err}
			}
			c.Executable, _ = os.Executable() // "": attach does not restart the reference server of the control group
			c.Plan.TestID, c.Stdout = args[0], cmd.OutOrStdout()
			*outcome, err = run.Attach(cmd.Context(), c)
			return err
		},
	}
	plan.AddFlags(cmd.Flags(), slices.DeleteFunc(plan.SuiteSettings(c.Local.Settings()), func(s plan.Setting) bool { return s.Name == "PIN" }))
	cmd.Flags().StringVar(&c.Shards, "shards", "", "value of --shards of the run, if its runners are on this machine")
	cmd.Flags().StringVar(&c.Kubernetes.Namespace, "namespace", "sse-soak", "k8s: namespace of the run")
	clusterFlags(cmd.Flags(), &c.Kubernetes)
	outputFlags(cmd.Flags(), &c.CI, &c.Terminal)
	return cmd
}
