// Package soak is the accounting of a soak inside k6: the module k6/x/soak, whose Ledger an
// EventSource of k6/x/sse feeds in Go, and the output `soak`, which leaves a shard.
package soak

import (
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/output"
)

// run is the one test of this process: k6 runs one script and ends, and the module and the
// output, which k6 creates apart, have to meet somewhere.
var run = newRecorder()

func init() {
	modules.Register("k6/x/soak", &rootModule{run})
	output.RegisterExtension("soak", func(p output.Params) (output.Output, error) {
		return newOutput(p, run)
	})
}
