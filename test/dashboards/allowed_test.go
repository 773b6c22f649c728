//go:build dashboards

package live

import "os"

// mayBeEmpty lists the queries, by dashboard and panel, that a clean soak on one machine leaves without data, with
// the reason. Every other query must return some.
var mayBeEmpty = map[string]string{
	"annotation/Backend restarted": "it does not restart in a clean soak",
	"soak/Firing alerts":           "nothing fires in a clean soak",
	"annotation/Alert":             "there is nothing to be alarmed at in a clean soak",
}

// absentExporters lists the queries whose exporter or service is not part of this test.
var absentExporters = map[string]string{
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

// addKernelGaps adds the queries that the kernel of this machine cannot answer.
func addKernelGaps() {
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		absentExporters["machines/Waiting for CPU and memory"] = "this kernel does not tell pressure"
	}
}
