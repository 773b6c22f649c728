package main

import (
	"fmt"
	"io"

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
		Short: "Judge a run again from its files, and write its reports again",
		Long: "report judges the run in DIR again from its files, and replaces verdict.json, report.html, report.txt,\n" +
			"report.md and the tables (.csv). The verdict does not affect the exit code. Without --baseline, the reports compare the run\n" +
			"with the last earlier run of the same plan, in a folder next to DIR, that passed without a regression.",
		Args: oneArg("folder of a run, such as results/latest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d := results.Dir(args[0])
			v, err := run.Judge(d, results.Dir(baseline), 0)
			if err != nil {
				return err
			}
			run.WriteRunList(d, "") // updates only an existing list
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", d.Path(results.PageFile), v.Verdict)
			if !open {
				return nil
			}
			return openPage(d.Path(results.PageFile), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&baseline, "baseline", "", "folder of a run of the same plan to compare with (default: the last passed run)")
	cmd.Flags().BoolVar(&open, "open", false, "open report.html in the browser")
	return cmd
}

// urlOpener returns a function that opens a URL in a browser, whose messages go to out.
func urlOpener(out io.Writer) func(url string) error {
	return func(url string) error {
		browser.Stdout = out
		return browser.OpenURL(url)
	}
}

func openPage(path string, out io.Writer) error {
	browser.Stdout = out
	if err := browser.OpenFile(path); err != nil {
		return fmt.Errorf("no browser could be started (%w); open %s", err, path)
	}
	return nil
}
