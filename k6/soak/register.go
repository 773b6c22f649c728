// Package soak is the part of a soak inside k6: the module k6/x/soak, with EventSource and a Ledger that counts in Go what the source
// receives, and the output `soak`, which writes the shard.
package soak

import (
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/output"
)

// run is the one test of this process: k6 runs one script and ends. Module and output share it, since k6
// creates each without the other.
var run = newRecorder()

func init() {
	modules.Register("k6/x/soak", &rootModule{run})
	output.RegisterExtension("soak", func(p output.Params) (output.Output, error) {
		return newOutput(p, run)
	})
}
