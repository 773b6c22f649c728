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

// linked and revision are version and commit of a release, set by the linker: -ldflags "-X main.linked=v1.2.3".
var linked, revision string

// version returns the release of this build. Without one it returns the commit, or the version of the module.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{Main: debug.Module{Version: "unknown"}}
	}
	return cmp.Or(linked, commit(), info.Main.Version)
}

// commit names the commit that this program was built from, with +dirty appended if files had changed since; "" if the
// build does not record it (-buildvcs=false).
func commit() string {
	id, changed := source()
	if changed {
		return id[:min(len(id), 12)] + "+dirty"
	}
	return id[:min(len(id), 12)]
}

// source returns the full hash of the commit that this program was built from, and whether files had changed since.
func source() (id string, changed bool) {
	if revision != "" {
		return revision, false
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				id = s.Value
			case "vcs.modified":
				changed = s.Value == "true"
			}
		}
	}
	return id, changed && id != ""
}
