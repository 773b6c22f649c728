package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func mergeCommand(outcome *verdict.Outcome) *cobra.Command {
	out := plan.DefaultLocal().Out
	var systems ci.Systems
	var options report.TerminalOptions
	var expect int
	cmd := &cobra.Command{
		Use:   "merge DIR | s3://BUCKET/PREFIX/TESTID",
		Short: "Merge the results of all runners into one verdict",
		Long: "merge reads the shards (the runners' result files) in DIR (or DIR/shards), adds them up,\n" +
			"judges them and writes verdict.json and the reports into DIR.\n\n" +
			"For a bucket, insert /TESTID into the value of `soak run --shards`, before any parameters:\n" +
			"s3://BUCKET/PREFIX?region=R becomes s3://BUCKET/PREFIX/TESTID?region=R. merge first downloads the\n" +
			"files of the run to the folder TESTID in --out. gocloud.dev defines the parameters of the URL, such\n" +
			"as region, endpoint, use_path_style and profile. Credentials come from the environment, a profile\n" +
			"or the role of the machine.\n\n" +
			exitCodes,
		Args: oneArg("folder of a run, such as results/latest, or one bucket"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if _, err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{Err: err}
			}
			if expect < 0 {
				return usageError{Err: fmt.Errorf("--expect must be at least 0, got %d", expect)}
			}
			if cmd.Flags().Changed("expect") && expect == 0 {
				expect = results.ExpectAny
			}
			*outcome, err = run.Merge(args[0], out, expect, cmd.OutOrStdout(), options, systems)
			return err
		},
	}
	plan.AddFlags(cmd.Flags(), []plan.Setting{{Name: "OUT", Value: &out, Help: "folder of all runs, to which a run from a bucket is added"}})
	cmd.Flags().IntVar(&expect, "expect", 0, "required runners, or machines that ran k6 alone (0: any; unset: as last merged)")
	outputFlags(cmd.Flags(), &systems, &options)
	return cmd
}
