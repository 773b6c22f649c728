//go:build dashboards

package live

import "os"

// may be empty are queries, by dashboard and panel, that a clean soak on one machine leaves
// without data, and why. Every other query must return some.
var mayBeEmpty = map[string]string{
	"annotation/Backend restarted": "it does not restart in a clean soak",
	"soak/Firing alerts":           "nothing fires in a clean soak",
	"annotation/Alert":             "there is nothing to be alarmed at in a clean soak",
}

// elsewhere are queries whose exporter or service is not part of this test.
var elsewhere = map[string]string{
	"soak/Published and confirmed":               noPublisher,
	"soak/Responses by state":                    noFinite,
	"soak/First content and inter-chunk latency": noFinite,
	"soak/Hosts end in":                          noAWS,
	"machines/AWS allowances exceeded":           noAWS,
	"machines/Notices of AWS":                    noAWS,
	"machines/Machines":                          noAWS + "; its other columns are those of panels that are tested",
	"machines/CPU by container":                  noCAdvisor,
	"machines/Memory by container":               noCAdvisor,
}

const noAWS = "no host of AWS is watched here"

const noCAdvisor = "nothing runs in a container here, so there is no cAdvisor: test/stack has one"

const noPublisher = "the backend publishes by itself"

const noFinite = "the streams of this run do not end by themselves; k6/soak tests the metrics"

// ofThisKernel adds what this very machine cannot tell.
func ofThisKernel() {
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		elsewhere["machines/Waiting for CPU and memory"] = "this kernel does not tell pressure"
	}
}
