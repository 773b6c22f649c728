//go:build e2e

package e2e

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A run of 600 streams needs few descriptors, because the service allows 25 streams per connection.
func TestHTTP2StreamsExceedDescriptorLimit(t *testing.T) { // not parallel: while other tests run, noops are over a second late
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	service := fakeservice.StartService(fakeservice.NewSpec(time.Second, fakeservice.PhaseRandom, 25), fakeservice.Strike{}, listener)
	defer service.Stop()
	v := beginWith(t, t.TempDir(), []string{"prlimit", "--nofile=560", "--"}, nil, "--backend-url", "http://"+listener.Addr().String(),
		"--http-version", "2", "--connections", "600", "--seconds", "11", "--noop-interval", "1", "--control", "0").verdict()
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Less(t, v.HTTP2.Connections, 40, "24 connections must suffice for the streams")
	require.EqualValues(t, 600, v.Connections.Completed)
	require.GreaterOrEqual(t, v.Messages.Received, uint64(3000))
	require.True(t, v.Server.Agrees)
}
