package suite

import "github.com/sse-soak/sse-soak/internal/resources"

// soak opens all streams and keeps them for the whole run. It is the run that one gets without naming a suite: its
// plan.json has no field for the suite, and its script declares none.
var soak = Suite{
	Name:    "soak",
	Short:   "hold every event stream for the whole time, and account for every noop of each",
	Script:  []string{"load-tests", "sse", "connectionTest.js"},
	Streams: true, Planned: true, Summary: true, Runners: 2, Samples: resources.Every, Doc: "docs/math.md",
}
