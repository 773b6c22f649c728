package main

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The health check fails with another server, without a server and after the end of the reference.
func TestHealth(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := other.Addr().String()
	check := func() error { return run(t.Context(), address, []string{"--healthcheck"}) }
	go func() {
		if conn, err := other.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1<<10)) // a client rejects a response that arrives before it sends the request
			_, _ = conn.Write([]byte("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	require.ErrorContains(t, check(), "503")
	require.ErrorContains(t, run(t.Context(), address, nil), "REFERENCE_LISTEN in .env): listen tcp")
	require.NoError(t, other.Close())
	require.Error(t, check())

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, address, nil) }()
	require.Eventually(t, func() bool { return check() == nil }, time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	require.Error(t, check())
	require.ErrorContains(t, run(t.Context(), address, []string{"--listen"}), "unexpected arguments")
}
