//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// A description that does not match its service ends the run before the load. The error names the wrong field.
func TestUnfitDescriptionFailsBeforeTheLoad(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	for i, c := range []struct {
		name     string
		oldNew   []string
		publish  []faulty.PublishFault
		exit     int
		wantText string
	}{
		{"publish is refused", nil, []faulty.PublishFault{{Kind: faulty.Refuse, Status: 401}}, 2, "/pub/TOPIC answered 401 Unauthorized (Unauthorized); if the service requires a token, add a header with {token} and set PUBLISH_TOKEN"},
		{"publish is not answered", nil, []faulty.PublishFault{{Kind: faulty.CutBefore}}, 2, "publish.url: POST http"},
		{"no topic", []string{"/sub/{topic}", "/sub/news"}, nil, 64, "publish has {topic}, but connect does not; add {topic} to connect"},
		{"no heartbeat", []string{"every: 30", "every: 1"}, nil, 2, `heartbeat is { "event": "ping", "every": 1 }, but no heartbeat arrived within 3 s: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("unfit-%d-", i)
			changed := *r
			changed.Service = changeModule(t, "nchan", c.oldNew...)
			s := soakService(t, &changed, prefix, faulty.Options{Publish: c.publish})
			require.Equal(t, c.exit, s.end(), s.out.String())
			require.Contains(t, s.out.String(), strings.ReplaceAll(c.wantText, "TOPIC", prefix+"topic-0"))
			require.LessOrEqual(t, s.proxy.Streams(), 1, "the load must not start")
			require.NoFileExists(t, s.dir.Path(results.VerdictFile))
		})
	}
}

// A hub that refuses a publisher without a token ends the run before the load.
func TestPublisherWithoutTokenFailsBeforeTheLoad(t *testing.T) {
	t.Parallel()
	r := startService(t, "mercure", services.Options{})
	r.Env = nil
	s := soakService(t, r, "token-", faulty.Options{})
	require.Equal(t, 2, s.end(), s.out.String())
	require.Regexp(t, `publish: POST http.*/.well-known/mercure answered 401 Unauthorized.*; set PUBLISH_TOKEN`, s.out.String())
	require.LessOrEqual(t, s.proxy.Streams(), 1, "the load must not start")
}

// If messages stop matching the description during a run, the run fails, and a reason names the first such message.
func TestChangedServiceFails(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	o := faulty.Options{}
	for number := int64(3); number <= perTopic; number++ {
		o.Faults = append(o.Faults, faulty.Fault{Kind: faulty.Garble, Number: number})
	}
	s := soakService(t, r, "fits-", o)
	v := s.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, s.out.String())
	require.EqualValues(t, serviceStreams*(perTopic-2), v.Messages.Corrupted)
	require.EqualValues(t, serviceStreams*2, v.Messages.Received)
	require.Zero(t, v.Messages.Missed)
	require.Regexp(t, `^fits-[0-9]+ received message 3 of topic fits-topic-[0-9]+ corrupted at `, findings(v, ledger.KindCorrupted)[0])
	require.Regexp(t, `first: fits-[0-9]+ received message 3 of topic fits-topic-[0-9]+ corrupted at `, reasons(v))
}
