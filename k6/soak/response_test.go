package soak

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// The service did not refuse a request for which the runner had no port or descriptor left.
func TestRefusalsByTheRunnerItselfAreCounted(t *testing.T) {
	t.Parallel()
	for errno, isLocal := range map[syscall.Errno]bool{syscall.EADDRNOTAVAIL: true, syscall.EMFILE: true, syscall.ECONNREFUSED: false} {
		h := holderOf(t, "http://127.0.0.1:1", moduleOf(t, answers))
		h.VU.StateField.Dialer = sockets.FailingDialer{Errno: errno}
		require.True(t, h.run(t, `finite(answers, {baseUrl: url, rate: 20, concurrency: 0, seconds: 0.2, maxInFlight: 100, drain: 60,
			firstTimeout: 60, idleTimeout: 60, linger: 60})`))
		s := new(shard.Shard)
		h.r.fill(s)
		refused := s.Responses.States[ledger.ResponseRefused]
		require.Positive(t, refused)
		if !isLocal {
			refused = 0
		}
		require.Equal(t, refused, s.Responses.RefusedLocally, errno)
		require.Contains(t, s.Responses.Findings[0].Reason, errno.Error())
	}
}

// Without an IPv6 address, a dial fails with the same error as without a free port.
func TestStreamRefusedForLackOfIPv6HasTheReason(t *testing.T) {
	hasIPv6 := proxy.HasIPv6
	proxy.HasIPv6 = func() bool { return false }
	t.Cleanup(func() { proxy.HasIPv6 = hasIPv6 })
	h := holderOf(t, "http://[::1]:1", "")
	h.VU.StateField.Dialer = sockets.FailingDialer{Errno: syscall.EADDRNOTAVAIL, Addr: &net.TCPAddr{IP: net.IPv6loopback, Port: 1}}
	require.True(t, h.run(t, `hold(null, {from: 0, to: 1, openFor: 500, idleTimeout: 5000, endTimeout: 5, reconnect: false, prefix: "d-"})`))
	s := new(shard.Shard)
	h.r.fill(s)
	for c := range s.Records() {
		require.Equal(t, ledger.ReasonNoIPv6, c.Reason)
		require.True(t, ledger.AreLocal(c.Refusals))
	}
}

// The service did not refuse a stream for which the runner had no port or descriptor left.
func TestStreamsRefusedByTheRunnerItselfHaveTheReason(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]string{
		syscall.EADDRNOTAVAIL: ledger.ReasonNoPort, syscall.EMFILE: ledger.ReasonNoDescriptor, syscall.ECONNREFUSED: "refused",
	} {
		h := holderOf(t, "http://127.0.0.1:1", "")
		h.VU.StateField.Dialer = sockets.FailingDialer{Errno: errno}
		require.True(t, h.run(t, `hold(null, {from: 0, to: 2, openFor: 2000, idleTimeout: 5000, endTimeout: 5, reconnect: false, prefix: "d-"})`))
		s := new(shard.Shard)
		h.r.fill(s)
		refused := 0
		for c := range s.Records() {
			refused++
			require.Equal(t, ledger.Refused, c.State)
			require.Equal(t, want, c.Reason)
			require.Equal(t, want, c.Refusals[0].Reason)
			require.Equal(t, want != "refused", ledger.AreLocal(c.Refusals))
			require.Contains(t, c.Findings[0].Note, errno.Error())
		}
		require.Equal(t, 2, refused)
	}
}
