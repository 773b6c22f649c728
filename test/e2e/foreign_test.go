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

// bareService returns a service without ids, timestamps or a ledger.
func bareService(interval time.Duration) fakeservice.ServiceSpec {
	return fakeservice.ServiceSpec{
		IDs: fakeservice.IDsNone, Format: fakeservice.Format{Lines: "\n", Framing: "chunks"},
		Schedule: fakeservice.Schedule{Factor: 1, Interval: interval, Phase: fakeservice.PhaseInterval},
	}
}

// startFake starts a fake service, which stops when the test ends.
func startFake(t *testing.T, spec fakeservice.ServiceSpec, strike fakeservice.Strike) (s *fakeservice.Service, url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url = "http://" + l.Addr().String()
	if spec.TLS != nil {
		url = "https://" + l.Addr().String()
	}
	s = fakeservice.StartService(spec, strike, l)
	t.Cleanup(s.Stop)
	return s, url
}

// Noops without numbers are counted by interval. Each fault affects one client, and starts at its fourth noop.
func TestForeignBackendIsCountedByInterval(t *testing.T) {
	t.Parallel()
	spec := bareService(800 * time.Millisecond)
	spec.Text = func(id string, n int) string {
		switch {
		case id == "f-1" && n == 4:
			return ""
		case id == "f-2" && n == 4:
			return goodNoop + goodNoop
		case id == "f-3" && n == 4:
			return "data: 1\n\n"
		case id == "f-4" && n >= 4:
			return ": a comment without a noop\n\n"
		}
		return goodNoop
	}
	_, url := startFake(t, spec, fakeservice.Strike{Fault: fakeservice.Fault{Action: fakeservice.ActClose, Clients: []string{"f-5"}, From: 4, Count: 1}})
	r := begin(t, nil, "--backend-url", url+"/", "--connections", "10", "--seconds", "12", "--noop-interval", "0.8", "--prefix", "f-")
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	n := v.Messages
	require.Equal(t, [3]uint64{1 + 5, 1, 1}, [3]uint64{n.Missed, n.Duplicated, n.Corrupted}, r.out.String())
	require.Equal(t, 1, v.Connections.Dropped)
	require.False(t, v.Server.Known)
	for _, reason := range []string{"f-1 missed 1", "f-2 received noop 4 twice", "f-3 received noop 4 corrupted", "f-4 missed 5", "f-5 was "} {
		require.Contains(t, reasons(v), reason)
	}
}
