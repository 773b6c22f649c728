package verdict

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// newEndRequests returns n requests to two servers, one every millisecond, of the given duration.
func newEndRequests(n int, duration time.Duration) *shard.EndRequests {
	var e shard.EndRequests
	at := time.Unix(1_700_003_595, 0)
	for i := range n {
		server := "backend-1"
		if i%2 == 1 {
			server = "backend-2"
		}
		e.Add(server, shard.CodeOK, at.Add(time.Duration(i)*time.Millisecond+duration), duration)
	}
	return &e
}

func TestRequestsThatEndTheStreams(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	require.Nil(t, judgeSoak(m, server, Evidence{}).EndRequests, "end_requests must be nil if no request ended a stream")
	m.EndRequests = newEndRequests(2000, time.Millisecond)
	m.EndRequests.Add("backend-2", "status-404", time.Unix(1_700_003_595, 0), 20*time.Millisecond)
	m.EndRequests.Add("", "net-1212", time.Unix(1_700_003_596, 0), 30*time.Millisecond)
	v := judgeSoak(m, server, Evidence{})
	e := v.EndRequests
	require.Equal(t, "DELETE /event/forcedisconnect", e.Request)
	require.EqualValues(t, 2000, e.Count)
	require.InDelta(t, 1, e.MinMS, 0)
	require.InDelta(t, 1, e.MS.Max, 0)
	require.EqualValues(t, 2, e.Failed)
	require.Equal(t, map[string]int64{"status-404": 1, "net-1212": 1}, e.Failures)
	require.InDelta(t, 30, e.FailedMS.Max, 0)
	require.InDelta(t, 2.02, e.Seconds, .001, "the time must start with the first request, even if it failed")
	require.InDelta(t, 2000/2.02, e.PerSecond, 1)
	require.EqualValues(t, 1001, e.MaxPerSecond)
	require.Len(t, e.Servers, 2)
	require.EqualValues(t, 1, e.Servers[1].Failed)
	require.EqualValues(t, 1000, e.Servers[1].Count)
	require.Empty(t, v.Warnings)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.Contains(t, string(text), `"end_requests":{"request":"DELETE /event/forcedisconnect","count":2000,"min_ms":1,`)

	m.Service = shard.Service{Name: "mine", CountBasis: shard.CountNothing, EndRequest: "POST /end"}
	require.Equal(t, "POST /end", StreamsOf(m, nil, false).EndRequests.Request)
}

// A service may answer DELETEs after seconds although its noops arrive on time.
func TestSlowEndsAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		duration, late, stall time.Duration
		want                  string
	}{
		"slow":                 {2 * time.Second, 12 * time.Millisecond, 0, "half of the requests took over 2 s, 5 % over 2 s; 99 % of the noops were at most 12 ms late; check how the service ends a stream"},
		"fast":                 {900 * time.Millisecond, 12 * time.Millisecond, 0, ""},
		"4 times the lateness": {2 * time.Second, 500 * time.Millisecond, 0, ""},
		"noops are late":       {20 * time.Second, 2 * time.Second, 0, ""},
		"a generator stalls":   {2 * time.Second, 12 * time.Millisecond, 1500 * time.Millisecond, "a runner stalled for 1.5 s meanwhile"},
	} {
		m, _ := cleanRun()
		m.EndRequests = newEndRequests(100, c.duration)
		m.Lateness.Reset()
		m.Lateness.Record(c.late)
		m.Series = []shard.Bucket{{Unix: 1_700_003_595, ProcessUsage: shard.ProcessUsage{StallMS: c.stall.Milliseconds()}}, {Unix: 1_700_000_000, ProcessUsage: shard.ProcessUsage{StallMS: 5000}}}
		warned := strings.Join(StreamsOf(m, nil, false).Warnings, "\n")
		if c.want == "" {
			require.NotContains(t, warned, "requests that end the streams", name)
			continue
		}
		require.Contains(t, warned, c.want, name)
	}
}
