package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	scripts "github.com/sse-soak/sse-soak/load-tests"
)

func scriptsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "scripts FOLDER",
		Short: "Write the k6 scripts to a folder, to run them with k6 or to change them",
		Long: "scripts writes the k6 scripts of this version to a new folder. The scripts are built into `soak run`, which\n" +
			"prefers the folder load-tests in the working directory, or else in the clone of the repository. They need\n" +
			"the program k6 next to soak, because the stock k6 lacks the modules that they import.\n\n" +
			"    soak scripts load-tests\n    k6 run load-tests/sse/connectionTest.js --vus 600 --iterations 600 --duration 60m \\\n      --env BACKEND_URL=http://HOST",
		Args: oneArg("folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err == nil {
				return usageError{Err: fmt.Errorf("%s already exists; name a new folder", args[0])}
			}
			if err := scripts.Write(args[0]); err != nil {
				return err //nolint:wrapcheck // a sentence for the user
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "wrote the scripts into %s\n", args[0])
			return err //nolint:wrapcheck // of standard output
		},
	}
}
