//go:build e2e

package e2e

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A countingListener counts the connections that it accepted.
type countingListener struct {
	net.Listener
	conns atomic.Int32 // number of accepted connections
}

func (c *countingListener) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.conns.Add(1)
	}
	return conn, err
}

// A run of 600 streams needs few descriptors, because the service allows 25 streams per connection.
func TestHTTP2StreamsExceedDescriptorLimit(t *testing.T) { // not parallel: while other tests run, noops are over a second late
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := &countingListener{Listener: tcp}
	service := fakeservice.StartService(fakeservice.NewSpec(time.Second, fakeservice.PhaseRandom, 25), fakeservice.Strike{}, listener)
	defer service.Stop()
	r := beginWith(t, t.TempDir(), []string{"prlimit", "--nofile=560", "--"}, nil, "--backend-url", "http://"+tcp.Addr().String(),
		"--http-version", "2", "--connections", "600", "--seconds", "11", "--noop-interval", "1", "--control", "0")
	await(t, "all streams must be open", func() bool {
		resp, err := http.Get("http://" + tcp.Addr().String() + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), "\nbackend_streams_open 600\n")
	})
	require.Less(t, listener.conns.Load(), int32(40), "24 connections must suffice for the streams")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.EqualValues(t, 600, v.Connections.Completed)
	require.GreaterOrEqual(t, v.Messages.Received, uint64(3000))
	require.True(t, v.Server.Agrees)
}
