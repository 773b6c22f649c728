package suite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestEndpointRows(t *testing.T) {
	t.Parallel()
	for _, suite := range []string{"rampup", "burst", "throughput", "cluster"} {
		r := runOf(suite, fixedParameters, shard.Stage{Name: "a", Title: "a", Kind: kindLoad, Seconds: 10, Rate: 30, Concurrency: 5, Requests: 300}).
			addAnswers("a", 100, 5).addAnswers("a", 100, 50).addAnswers("a", 90, 8, shard.TagEndpoint, "math.add").
			addAnswers("a", 10, 1, shard.TagEndpoint, "math.add", shard.TagCode, shard.CodeWrongContent).addAnswers("a", 3, 1, shard.TagEndpoint, "status", shard.TagCode, "status-503")
		v := judge(r)
		require.Equal(t, [][]string{{"echo", "200", "0", "0", "20"}, {"math.add", "100", "10", "10", "9"}, {"status", "3", "3", "0", "0"}}, table(v, "By endpoint").Rows, suite)
		require.Equal(t, [][]string{
			{"echo", "200", "5.00", "27.5", "22.5", "5.02", "50.0", "50.0", "50.0", "50.0"},
			{"math.add", "90", "8.00", "8.00", "0.00", "8.00", "8.00", "8.00", "8.00", "8.00"},
			{"status", "0", "–", "–", "–", "–", "–", "–", "–", "–"},
		}, table(v, "Latency by endpoint, ms").Rows, suite)
	}
	one := runOf("rampup", fixedParameters, shard.Stage{Name: "a", Title: "a", Kind: kindLoad, Seconds: 10, Rate: 30}).addAnswers("a", 300, 5)
	require.Empty(t, table(judge(one), "By endpoint").Rows, "with one endpoint, the table would repeat the table by stage")
}

// Each target has its own tables. Its rates refer to the time of its own stages.
func TestEndpointsOfTwoTargets(t *testing.T) {
	t.Parallel()
	r := runOf("cluster", fixedParameters,
		shard.Stage{Name: "a", Title: "a", Kind: kindLoad, Target: single, Seconds: 10, Concurrency: 5, Requests: 200},
		shard.Stage{Name: "b", Title: "b", Kind: kindLoad, Target: cluster, Start: 10, Seconds: 20, Concurrency: 5, Requests: 200},
	)
	for _, stage := range []string{"a", "b"} {
		r.addAnswers(stage, 100, 5).addAnswers(stage, 100, 7, shard.TagEndpoint, "math.add")
	}
	v := judge(r)
	for target, rate := range map[string]string{single: "10", cluster: "5"} {
		for _, row := range table(v, "By endpoint, "+target).Rows {
			require.Equal(t, rate, row[4], target+": "+row[0])
		}
		require.Len(t, table(v, "Latency by endpoint, "+target+", ms").Rows, 2)
	}
}
