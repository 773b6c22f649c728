//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// Most messages of streams with a lifetime of 1.9 s cannot be checked, so the run is invalid, even if messages are
// lost. At the rate that the reason of the verdict names, most messages are checked.
func TestMessagesOfShortStreamsAreNotChecked(t *testing.T) {
	t.Parallel()
	run := func(prefix, rate string, drop func(topic, payload string) bool) *verdict.Verdict {
		server := (&fakeservice.Hub{Lifetime: 1900 * time.Millisecond, Preamble: "retry: 100\n\n", Lose: drop}).Start(t)
		service := describeHub(t, "end: { by: 'server', lifetime: [1.5, 2.5] }, resume: { by: 'none' },")
		return begin(t, nil, "--service", service, "--backend-url", server.URL, "--topics", "8", "--publish-rate", rate,
			"--prefix", prefix, "--connections", "16", "--seconds", "17").verdict()
	}
	lossy := func(_, payload string) bool {
		return strings.Contains(payload, `"seq":4,`) || strings.Contains(payload, `"seq":8,`)
	}
	v := run("few-", "8", lossy)
	require.Equal(t, verdict.Invalid, v.Verdict, reasons(v))
	rate := regexp.MustCompile(`publish at least ([0-9]+) messages per second \(PUBLISH_RATE\)`).FindStringSubmatch(reasons(v))
	require.NotEmpty(t, rate, reasons(v))
	v = run("many-", rate[1], nil)
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
}

// The description states that streams resume, but heartbeats of the service reset the last event id of its clients.
func TestReconnectsWithoutAnID(t *testing.T) {
	t.Parallel()
	hub := &fakeservice.Hub{
		ID: fakeservice.DecimalID, History: true, Heartbeat: "event: ping\nid:\n\n", HeartbeatInterval: 50 * time.Millisecond,
		Lifetime: 3 * time.Second, Preamble: "retry: 500\n\n",
	}
	service := describeHub(t, "heartbeat: { event: 'ping' }, end: { by: 'server', lifetime: [2.5, 3.5] },")
	v := begin(t, nil, append(publishFlags(service, hub.Start(t).URL), "--prefix", "ids-", "--connections", "16", "--seconds", "14")...).verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), `the heartbeat "ping"`)
}
