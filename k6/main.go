// Command k6 is Grafana k6 with this repository's extension compiled in: the modules k6/x/sse,
// k6/x/soak and k6/x/handshake, and the output soak.
package main

import (
	k6cmd "go.k6.io/k6/v2/cmd"

	_ "github.com/sse-soak/sse-soak/k6/handshake" // registers k6/x/handshake
	_ "github.com/sse-soak/sse-soak/k6/soak"      // registers k6/x/soak and the output
	_ "github.com/sse-soak/sse-soak/k6/sse"       // registers k6/x/sse
)

func main() {
	k6cmd.Execute()
}
