package verdict

import "github.com/sse-soak/sse-soak/internal/resources"

// Ran is what a run was made with, as `soak run` wrote it down. What is empty is not recorded.
type Ran struct {
	Command []string          `json:"command,omitempty"` // as typed, with the variables that were settings in front of it, without secrets
	Commit  string            `json:"commit,omitempty"`  // of soak, and +dirty behind it where files of the build had changed
	Soak    string            `json:"soak,omitempty"`    // version
	K6      string            `json:"k6,omitempty"`      // version, where there are no runners that say it
	Go      string            `json:"go,omitempty"`      // that soak was built with
	Backend string            `json:"backend,omitempty"` // version of our own backend
	Nginx   string            `json:"nginx,omitempty"`   // that soak started
	Machine resources.Machine `json:"machine"`           // of `soak run`
}
