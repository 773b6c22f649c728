package main

import (
	"github.com/pkg/browser"
	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/run"
)

func liveCommand() *cobra.Command {
	var w run.Watching
	cmd := &cobra.Command{
		Use:   "live DIR | s3://BUCKET/PREFIX",
		Short: "Show a run of another terminal or machine in a browser",
		Long: "live shows a run by the checkpoints that its runners write every 30 s: in the folder of the run, such as results/latest, or in\n" +
			"the folder or bucket that --shards of the run named, with the test id behind it. It changes nothing there. When the run is over\n" +
			"the page becomes its report. `soak run --live` shows a run of its own, a second behind.",
		Args: oneArg("folder of a run, such as results/latest, or bucket"),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Location, w.Stdout = args[0], cmd.OutOrStdout()
			w.OpenURL = func(url string) error {
				browser.Stdout = cmd.ErrOrStderr()
				return browser.OpenURL(url)
			}
			return run.Watch(cmd.Context(), w)
		},
	}
	cmd.Flags().StringVar(&w.Address, "listen", "", "address to show it at, such as :8080, which needs the token in its URL (default: a free port, for this machine only)")
	return cmd
}
