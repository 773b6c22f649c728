// SPDX-License-Identifier: AGPL-3.0-only

// Command k6 is Grafana k6 with the extension of this repository compiled in.
package main

import (
	k6cmd "go.k6.io/k6/v2/cmd"

	_ "github.com/sse-soak/sse-soak" // registers the extension, as `xk6 build` does
)

func main() {
	k6cmd.Execute()
}
