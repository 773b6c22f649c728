package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/report"
	"github.com/sse-soak/sse-soak/rundir"
	"github.com/sse-soak/sse-soak/verdict"
)

func mergeCommand(outcome *verdict.Outcome) *cobra.Command {
	return &cobra.Command{
		Use:   "merge DIR",
		Short: "Merge the shards of a run into one verdict",
		Long:  "merge reads the shards in DIR (or DIR/shards), adds them up, judges them and writes verdict.json and the reports into DIR.\nThe exit code is the verdict.",
		Args:  oneArg("folder of a run, such as results/latest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := judge(rundir.Dir(args[0]))
			if err != nil {
				return err
			}
			*outcome = v.Verdict
			return report.Text(cmd.OutOrStdout(), v)
		},
	}
}

func reportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR",
		Short: "Render the reports of a run again",
		Long:  "report renders report.txt, report.md, connections.csv and series.csv of the run in DIR again. Its exit code says only whether it could.",
		Args:  oneArg("folder of a run, such as results/latest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d := rundir.Dir(args[0])
			v, err := judge(d)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", d.Path("report.md"), v.Verdict)
			return nil
		},
	}
}

// judge makes the verdict of a run from its files, and every report.
func judge(d rundir.Dir) (*verdict.Verdict, error) {
	v, m, err := d.Judge()
	if err != nil {
		return nil, err
	}
	return v, d.Report(v, m)
}
