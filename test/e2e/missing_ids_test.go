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

// Most messages of streams with a lifetime of 1.9 s cannot be checked, so the run is invalid. At the rate that its
// reason names, most messages are checked.
func TestMessagesOfShortStreamsAreNotChecked(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, prefix, rate string, drop func(topic, payload string) bool) *verdict.Verdict {
		t.Helper()
		server := (&fakeservice.Hub{Lifetime: 1900 * time.Millisecond, Preamble: "retry: 100\n\n", Lose: drop}).Start(t)
		service := describeHub(t, "end: { by: 'server', lifetime: [1.5, 2.5] }, resume: { by: 'none' },")
		return begin(t, nil, "--service", service, "--backend-url", server.URL, "--topics", "8", "--publish-rate", rate,
			"--prefix", prefix, "--connections", "16", "--seconds", "17", "--runners", "1").verdict()
	}
	lossy := func(_, payload string) bool {
		return strings.Contains(payload, `"seq":4,`) || strings.Contains(payload, `"seq":8,`)
	}
	for name, drop := range map[string]func(topic, payload string) bool{"nothing is lost": nil, "every fourth message is lost": lossy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := run(t, "few-", "8", drop)
			require.Equal(t, verdict.Invalid, v.Verdict, reasons(v))
			rate := regexp.MustCompile(`publish at least ([0-9]+) messages per second \(PUBLISH_RATE\)`).FindStringSubmatch(reasons(v))
			require.NotEmpty(t, rate, reasons(v))
			v = run(t, "many-", rate[1], drop)
			if drop == nil {
				require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
			} else {
				require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
			}
		})
	}
}

// The description states that streams resume, but the service resets the id of its clients, or sends no id.
func TestReconnectsWithoutAnID(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hub    *fakeservice.Hub
		want   verdict.Outcome
		reason string
	}{
		"heartbeats reset the id": {
			&fakeservice.Hub{ID: fakeservice.DecimalID, History: true, Heartbeat: "event: ping\nid:\n\n", HeartbeatInterval: 50 * time.Millisecond},
			verdict.Fail, `the heartbeat "ping"`,
		},
		"no message has an id": {&fakeservice.Hub{History: true}, verdict.Invalid, "resume: { by: 'none' }"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.hub.Lifetime, c.hub.Preamble = 3*time.Second, "retry: 500\n\n"
			server := c.hub.Start(t)
			service := describeHub(t, "heartbeat: { event: 'ping' }, end: { by: 'server', lifetime: [2.5, 3.5] },")
			v := begin(t, nil, append(publishFlags(service, server.URL),
				"--prefix", "ids-", "--connections", "16", "--seconds", "17", "--runners", "1")...).verdict()
			require.Equal(t, c.want, v.Verdict, reasons(v))
			require.Contains(t, reasons(v), c.reason)
		})
	}
}
