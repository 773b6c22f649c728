package main

import (
	"fmt"

	"github.com/pkg/browser"
	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run"
)

func reportCommand() *cobra.Command {
	var baseline string
	var open bool
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Render the reports of a run again",
		Long: "report renders report.html, report.txt, report.md, connections.csv and series.csv of the run in DIR again,\n" +
			"next to each other in DIR. Its exit code says only whether it could.",
		Args: oneArg("folder of a run, such as results/latest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d := results.Dir(args[0])
			v, err := run.Judge(d, results.Dir(baseline))
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", d.Path(results.PageFile), v.Verdict)
			if !open {
				return nil
			}
			browser.Stdout = cmd.ErrOrStderr()
			if err := browser.OpenFile(d.Path(results.PageFile)); err != nil {
				return fmt.Errorf("no browser could be started (%w): open %s yourself", err, d.Path(results.PageFile))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&baseline, "baseline", "", "folder of a run of the same plan to compare with (default: the last one beside DIR that passed)")
	cmd.Flags().BoolVar(&open, "open", false, "open report.html in the browser")
	return cmd
}
