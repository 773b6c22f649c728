package main

import (
	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/run"
)

func liveCommand() *cobra.Command {
	var w run.WatchConfig
	cmd := &cobra.Command{
		Use:   "live DIR | s3://BUCKET/PREFIX/TESTID",
		Short: "Show a run in a browser, from another terminal or machine",
		Long: "live shows a run from the checkpoints of its runners. DIR is the folder of the run, such as results/latest;\n" +
			"for a bucket, insert /TESTID into the value of `soak run --shards`, before any parameters, such as\n" +
			"s3://BUCKET/PREFIX/TESTID?region=R. live is read-only.\n" +
			"After the run, the page shows the report. If --listen is not a loopback address, the URL has a token.\n" +
			"`soak run --live` shows its own run with a delay of one second.",
		Args: oneArg("folder of a run, such as results/latest, or one bucket"),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Location, w.Stdout, w.OpenURL = args[0], cmd.OutOrStdout(), urlOpener(cmd.ErrOrStderr())
			return run.Watch(cmd.Context(), w)
		},
	}
	cmd.Flags().StringVar(&w.Address, "listen", "", "address to listen on, such as :8080 (default: a free loopback port)")
	return cmd
}
