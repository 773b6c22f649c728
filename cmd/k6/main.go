// SPDX-License-Identifier: AGPL-3.0-only

// Command k6 is Grafana k6 with the extension of this repository compiled in. It also has a module k6/x/sse with
// EventSource and open, for scripts that were written for xk6-sse.
package main

import (
	k6cmd "go.k6.io/k6/v2/cmd"
	"go.k6.io/k6/v2/js/modules"

	_ "github.com/sse-soak/sse-soak" // registers the extension, as `xk6 build` does
	"github.com/sse-soak/sse-soak/k6/sse"
)

func main() {
	modules.Register("k6/x/sse", sse.New())
	k6cmd.Execute()
}
