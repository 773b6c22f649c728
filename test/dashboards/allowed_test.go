//go:build dashboards

package dashboards

import "os"

// mayBeEmpty maps the queries that may have no data in a clean soak on one machine to the reasons. A key is
// DASHBOARD/PANEL or annotation/NAME.
var mayBeEmpty = map[string]string{
	"annotation/Backend restarted": "the backend does not restart in a clean soak",
	"soak/Firing alerts":           "no alert fires in a clean soak",
	"annotation/Alert":             "no alert fires in a clean soak",
}

// absentSources maps the queries whose metrics have no source in this test to the reasons.
var absentSources = map[string]string{
	"soak/Published and confirmed":               noPublisher,
	"soak/Responses by state":                    noFinite,
	"soak/First content and inter-chunk latency": noFinite,
	"soak/Hosts end in":                          noAWS,
	"machines/AWS allowances exceeded":           noAWS,
	"machines/AWS notices":                       noAWS,
	"machines/Machines":                          noAWS + "; tests of other panels cover its other columns",
	"machines/CPU by container":                  noCAdvisor,
	"machines/Memory by container":               noCAdvisor,
}

// Reasons why a query cannot have data in this test.
const (
	noAWS       = "this test has no host on AWS"
	noCAdvisor  = "this test has no container and no cAdvisor; test/stack has them"
	noPublisher = "the run does not publish"
	noFinite    = "the streams of this run do not end by themselves; k6/soak tests the metrics"
)

// addKernelGaps adds the queries whose metrics the kernel of this machine does not report.
func addKernelGaps() {
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		absentSources["machines/Waiting for CPU and memory"] = "this kernel does not report pressure"
	}
}
