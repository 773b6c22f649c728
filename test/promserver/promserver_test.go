package promserver

import (
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Prometheus listens on the given host, so that a cluster on this machine can reach the server.
func TestPrometheusListensOnTheHost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have only one loopback address")
	}
	t.Parallel()
	host, _, err := net.SplitHostPort(Run(t, "127.0.0.2", "scrape_configs: []"))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.2", host)
}
