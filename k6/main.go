// Command k6 is Grafana k6 with this repository's extension compiled in:
// the modules k6/x/sse and k6/x/soak, and the output soak.
package main

import (
	k6cmd "go.k6.io/k6/v2/cmd"
)

func main() {
	k6cmd.Execute()
}
