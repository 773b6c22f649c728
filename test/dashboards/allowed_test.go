//go:build dashboards

package live

import "os"

// may be empty are queries, by dashboard and panel, that a clean soak on one machine leaves
// without data, and why. Every other query must return some.
var mayBeEmpty = map[string]string{
	"annotation/Backend restarted": "it does not restart in a clean soak",
	"annotation/Alert":             "there is nothing to be alarmed at in a clean soak",
}

// elsewhere are queries whose exporter or service is not part of this test.
var elsewhere = map[string]string{
	"soak/Published and confirmed":    noPublisher,
	"soak/Published per second":       noPublisher,
	"soak/Heartbeats per second":      noPublisher,
	"host/CPU by container":           noCAdvisor,
	"host/Memory by container":        noCAdvisor,
	"host/CPU throttled by container": noCAdvisor,
	"k6/CPU of k6 in containers":      noContainer,
	"k6/Memory of k6 in containers":   noContainer,
}

const noCAdvisor = "nothing runs in a container here, so there is no cAdvisor: test/stack has one"

const noContainer = "k6 runs in no container of the tests"

const noPublisher = "our backend publishes by itself, and sends no heartbeats"

// ofThisKernel adds what this very machine cannot tell.
func ofThisKernel() {
	if _, err := os.Stat("/proc/sys/net/netfilter/nf_conntrack_count"); err != nil {
		elsewhere["host/Connection tracking"] = "this kernel tracks no connections"
	}
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		for _, panel := range []string{"host/Waiting for CPU and memory", "k6/Waiting for CPU"} {
			elsewhere[panel] = "this kernel does not tell pressure"
		}
	}
}
