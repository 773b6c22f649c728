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
		Long: "attach continues, on the same machine, a `soak run` whose soak process was killed. It follows the\n" +
			"runners to their end and judges the run. It replaces runners that ended early, unless they published\n" +
			"messages or ended with an error. The run must have --backend-url, and must not have a suite\n" +
			"argument, --at or --runner. In all other runs on one machine, the runners end when soak ends.\n\n" +
			"attach also continues, on any machine, a `soak run --on k8s` that was killed or lost its connection\n" +
			"to the cluster. It follows the run to its end, collects the shards (the runners' result files),\n" +
			"judges the run and cleans up.\n\n" + exitCodes,
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
