package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand returns a command for packagers of soak. cobra reads the date of the pages from the variable SOURCE_DATE_EPOCH.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write a manual page for each command",
		Hidden: true,
		Args:   oneArg("folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { // #nosec G301 -- manual pages are for all users
				return fmt.Errorf("write the manual: %w", err)
			}
			header := doc.GenManHeader{Section: "1", Source: "sse-soak " + version(), Manual: "sse-soak"}
			return doc.GenManTree(cmd.Root(), &header, args[0]) //nolint:wrapcheck // the error names the file
		},
	}
}
