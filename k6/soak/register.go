// Package soak is the part of a soak inside k6. The module k6/x/soak has hold and finite, which open the streams of a
// run, and EventSource with a Ledger that counts messages in Go. The output `soak` writes the shard.
package soak

import (
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/output"
)

// run is the recorder of this process, which runs one script. Module and output share it, because k6 creates them
// independently.
var run = newRecorder()

func init() {
	modules.Register("k6/x/soak", &rootModule{run})
	output.RegisterExtension("soak", func(p output.Params) (output.Output, error) {
		return newOutput(p, run)
	})
}
