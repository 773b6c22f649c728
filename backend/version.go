package main

import "runtime/debug"

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// buildVersion returns the version that the linker set, else "devel-" and 12 digits of the commit, else "devel".
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
