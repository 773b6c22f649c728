package verdict

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestColumnsOfNumbers(t *testing.T) {
	t.Parallel()
	table := Table{Columns: []string{"stage", "rate", "took", "of all", "status"}}
	table.Add("5 at a time", "20/s", "53.4 MiB", "-31 % … +15 %", "good")
	table.Add("300 requests", "1,000/s", "–", "", "bad")
	for i, numeric := range []bool{false, true, true, true, false} {
		require.Equal(t, numeric, table.Numeric(i), table.Columns[i])
	}
	require.False(t, (&Table{Columns: []string{"stage"}}).Numeric(0), "a column without rows must not be numeric")
}

// The verdict.json of a suite without streams omits the counts of streams, because zeros would look like a soak without
// messages.
func TestVerdictJSONOfASuite(t *testing.T) {
	t.Parallel()
	m := &shard.Merged{
		Plan:    plan.Plan{TestID: "t", Suite: "rampup", Runners: 1, BackendURL: "http://h"},
		Suite:   &shard.Suite{Name: "rampup", Profile: "smoke", Parameters: map[string]string{"STAGES": "20"}},
		Runners: []shard.Runner{{Index: 1, State: shard.Finished, EndedUS: 1e6}},
	}
	b, err := json.Marshal(Judge(&Evidence{Rounds: []*shard.Merged{m}}, Assessment{
		Layout: Layout{Declared: true}, Tables: []Table{{Title: "T", Columns: []string{"a"}, Rows: [][]string{{"1"}}}},
	}))
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(b, &got))
	for _, name := range []string{"messages", "service", "interval_s", "connections", "lateness_ms", "connect_ms", "server"} {
		require.NotContains(t, got, name)
	}
	require.Equal(t, "pass", got["verdict"])
	require.Equal(t, map[string]any{
		"suite": "rampup", "profile": "smoke", "parameters": map[string]any{"STAGES": "20"}, "runners": 1., "backend_url": "http://h",
	}, got["plan"], "the plan must have the settings by which runs are compared")
	require.Equal(t, "T", got["tables"].([]any)[0].(map[string]any)["title"])
	var read Verdict
	require.NoError(t, json.Unmarshal(b, &read))
	require.Equal(t, "rampup", read.Suite.Name)
}

func TestRedirectOriginsAreNamed(t *testing.T) {
	t.Parallel()
	for want, redirects := range map[string][]shard.Redirect{
		"": nil,
		", which redirected 1 stream to http://b": {{Origin: "http://b", Streams: 1}},
		", which redirected 9 streams to http://b, 3 streams to http://c, 2 streams to http://d, 4 streams to other origins": {{Origin: "http://b", Streams: 9}, {Origin: "", Streams: 3}, {Origin: "http://c", Streams: 3}, {Origin: "http://d", Streams: 2}, {Origin: "http://e", Streams: 1}},
	} {
		require.Equal(t, want, (&Counts{Redirects: redirects}).RedirectText())
	}
}

func TestHTTP2Text(t *testing.T) {
	t.Parallel()
	for want, shared := range map[string]*shard.HTTP2{
		"":                             nil,
		"20 streams over 1 connection": {Streams: 20, Connections: 1, MaxPerRunner: 1},
		"400 streams over 4 connections, at most 2 of one runner": {Streams: 400, Connections: 4, MaxPerRunner: 2},
	} {
		require.Equal(t, want, (&Counts{HTTP2: shared}).HTTP2Text())
	}
}
