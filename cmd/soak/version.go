package main

import (
	"cmp"
	"runtime/debug"
)

// linked and revision are version and commit of a release, set by the linker: -ldflags "-X main.linked=v1.2.3".
var linked, revision string

// version names this build: the release, else the commit, else what Go knows of the module.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{Main: debug.Module{Version: "unknown"}}
	}
	return cmp.Or(linked, commit(), info.Main.Version)
}

// commit is what this program was built of, with +dirty behind it where files had changed since; "" where the build does not
// say (-buildvcs=false).
func commit() string {
	id, changed := revision, ""
	if info, ok := debug.ReadBuildInfo(); ok && id == "" {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				id = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = "+dirty"
			}
		}
	}
	if id == "" {
		return ""
	}
	return id[:min(len(id), 12)] + changed
}
