package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err //nolint:wrapcheck // of standard output
		},
	}
}

// release and revision are the version and the commit of a release. The linker sets them with
// -ldflags "-X main.release=v1.2.3".
var release, revision string

// version returns the version of the release, else the commit, else the version of the module, else "unknown".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return versionOf(info.Main)
}

func versionOf(m debug.Module) string { return cmp.Or(release, commit(), m.Version, "unknown") }

// commit returns the first 12 digits of the commit, with +dirty if files were modified, or "" if it is unknown.
func commit() string {
	id, modified := source()
	id = id[:min(len(id), 12)]
	if modified {
		return id + "+dirty"
	}
	return id
}

// source returns the full hash of the commit ("" if the build records none), and whether files were modified.
func source() (id string, modified bool) {
	if revision != "" {
		return revision, false
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				id = s.Value
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
	}
	return id, modified && id != ""
}
