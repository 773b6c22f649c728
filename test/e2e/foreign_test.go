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

// bareService returns a service without ids, timestamps and ledger.
func bareService(interval time.Duration) fakeservice.ServiceSpec {
	return fakeservice.ServiceSpec{
		IDs: fakeservice.IDsNone, Format: fakeservice.Format{Lines: "\n", Framing: "chunks"},
		Schedule: fakeservice.Schedule{Factor: 1, Interval: interval, Phase: fakeservice.PhaseConnect},
	}
}

// startFake starts a fake service until the test ends.
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

// Noops without numbers are counted by the interval. Each fault affects the client f-3 from its fourth noop on.
func TestForeignBackendIsCountedByInterval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action                        string
		count                         int
		missed, duplicated, corrupted uint64
		dropped                       int
		reason                        string
	}{
		"none":      {},
		"drop":      {action: fakeservice.ActLose, count: 1, missed: 1, reason: "f-3 missed 1"},
		"duplicate": {action: fakeservice.ActRepeat, count: 1, duplicated: 1, reason: "f-3 received noop 4 twice"},
		"corrupt":   {action: fakeservice.ActCorrupt, count: 1, corrupted: 1, reason: "f-3 received noop 4 corrupted"},
		"cut":       {action: fakeservice.ActClose, count: 1, dropped: 1, reason: "f-3 was "},
		"silence":   {action: fakeservice.ActQuiet, missed: 5, reason: "f-3 missed 5"},
	} {
		t.Run("fault="+name, func(t *testing.T) {
			t.Parallel()
			_, url := startFake(t, bareService(800*time.Millisecond), fakeservice.Strike{
				Fault: fakeservice.Fault{Action: c.action, Devices: []string{"f-3"}, From: 4, Count: c.count},
			})
			r := begin(t, nil, "--backend-url", url+"/", "--connections", "10", "--seconds", "12", "--noop-interval", "0.8", "--prefix", "f-")
			v := r.verdict()
			want := verdict.Pass
			if c.action != "" {
				want = verdict.Fail
			}
			require.Equal(t, want, v.Verdict, r.out.String())
			n := v.Messages
			require.Equal(t, []uint64{c.missed, c.duplicated, c.corrupted}, []uint64{n.Missed, n.Duplicated, n.Corrupted}, r.out.String())
			require.Equal(t, c.dropped, v.Connections.Dropped)
			require.False(t, v.Server.Known)
			require.Contains(t, reasons(v), c.reason)
		})
	}
}
