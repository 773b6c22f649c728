package service

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

const (
	numberedMessages = `"message": {"seq": "id"}`
	publishing       = `"message": {"seq": "id"}, "publish": {"url": "{base}", "body": "{run} {seq}"}`
)

func TestIntervalAndIdleTimeout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		parts    string
		plan     plan.Plan
		interval float64
		idle     time.Duration
	}{
		{publishing, plan.Plan{Topics: 5, PublishRate: 2}, 2.5, 10 * time.Second}, // at least minIdle
		{publishing, plan.Plan{Topics: 10, PublishRate: 2}, 5, 12500 * time.Millisecond},
		{`"heartbeat": {"comment": true, "every": 30}, ` + publishing, plan.Plan{Topics: 5, PublishRate: 2}, 2.5, 75 * time.Second},
		{`"message": {"every": 20}`, plan.Plan{NoopInterval: 7}, 20, 50 * time.Second},
		{`"message": {"every": 20}, "heartbeat": {"comment": true, "every": 40}`, plan.Plan{NoopInterval: 7}, 20, 100 * time.Second},
		{`"message": "unchecked", "heartbeat": {"comment": true, "every": 40}`, plan.Plan{NoopInterval: 7}, 40, 100 * time.Second},
		{`"heartbeat": {"comment": true, "every": 40}, ` + numberedMessages, plan.Plan{NoopInterval: 7}, 7, 100 * time.Second},
		{`"message": "unchecked"`, plan.Plan{NoopInterval: 7}, 7, 17500 * time.Millisecond},
		{`"message": "unchecked"`, plan.Plan{NoopInterval: 70, Seconds: 65}, 30, 75 * time.Second},
	} {
		if c.plan.Seconds == 0 {
			c.plan.Seconds = 3600
		}
		s := serviceWith(t, c.parts)
		require.NoError(t, s.Complete(&c.plan))
		require.InDelta(t, c.interval, c.plan.NoopInterval, 0, c.parts)
		require.Equal(t, c.idle, s.IdleTimeout(&c.plan), c.parts)
	}
}

// serviceWith returns the service of a minimal description with additional fields.
func serviceWith(t testing.TB, parts string) *Service {
	t.Helper()
	return mustParse(t, fmt.Appendf(nil, `{"name": "mine", "connect": {"url": "{base}"}, %s}`, parts))
}

func mustParse[T string | []byte](t testing.TB, description T) *Service {
	t.Helper()
	s, err := Parse([]byte(description))
	require.NoError(t, err, string(description))
	return s
}

func TestPlanIsCompleted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		parts     string
		plan      plan.Plan
		reconnect bool
		err       string
	}{
		{numberedMessages, plan.Plan{}, false, ""},
		{numberedMessages + `, "end": {"by": "server", "lifetime": 60}`, plan.Plan{}, true, ""},
		{numberedMessages, plan.Plan{TokenTTL: 30}, true, ""},
		{numberedMessages, plan.Plan{Topics: 5, PublishRate: 2}, false, "TOPICS and PUBLISH_RATE need publish in the description of mine, got 5 and 2"},
		{publishing, plan.Plan{}, false, "mine delivers only published messages; set TOPICS and PUBLISH_RATE"},
	} {
		if err := serviceWith(t, c.parts).Complete(&c.plan); c.err != "" {
			require.ErrorContains(t, err, c.err)
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, c.reconnect, c.plan.Reconnect, c.parts)
	}
}

// A service may announce in a header of the response that it could not resume from the requested id.
func TestGapInAHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gap, header, requested string
		missed                 bool
	}{
		{"earliest", "Earliest ", "a", true},
		{"earliest", "a", "a", false},
		{"earliest", "", "a", false},
		{AnotherID, "a", "a", false},
		{AnotherID, "b", "a", true},
		{AnotherID, "earliest", "a", true},
		{AnotherID, "", "a", false},
		{AnotherID, "b", "", false}, // the client did not request to resume
	} {
		header := http.Header{}
		if c.header != "" {
			header.Set("Last-Event-ID", c.header)
		}
		r := Resume{Header: true, GapHeader: "last-event-id", GapValue: c.gap}
		require.Equal(t, c.missed, r.Missed(header, []byte(c.requested)), c)
	}
	require.False(t, new(Resume).Missed(http.Header{}, []byte("a")))
}
