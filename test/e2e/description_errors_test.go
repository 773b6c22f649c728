//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// A description that does not match its service ends the run before the load. The error names the cause.
func TestUnfitDescriptionFailsBeforeTheLoad(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	for i, c := range []struct {
		name     string
		oldNew   []string
		publish  []faulty.PublishFault
		wantText string
	}{
		{"publish is refused", nil, []faulty.PublishFault{{Kind: faulty.Refuse, Status: 401}}, "/pub/TOPIC answered 401 Unauthorized (Unauthorized); if the service requires a token, add a header with {token} and set PUBLISH_TOKEN"},
		{"no heartbeat", []string{"every: 30", "every: 1"}, nil, `heartbeat is { "event": "ping", "every": 1 }, but no heartbeat arrived within 3 s: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("unfit-%d-", i)
			instance := *r
			instance.Service = changeModule(t, "nchan", c.oldNew...)
			s := soakService(t, &instance, prefix, faulty.Options{Publish: c.publish})
			require.Equal(t, 2, s.end(), s.out.String())
			require.Contains(t, s.out.String(), strings.ReplaceAll(c.wantText, "TOPIC", prefix+"topic-0"))
			require.LessOrEqual(t, s.proxy.Streams(), 1, "the load must not start")
			require.NoFileExists(t, s.dir.Path(results.VerdictFile))
		})
	}
}
