package verdict

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/price"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestARunOnMachinesWithAPriceSaysWhatItTook(t *testing.T) {
	t.Parallel()
	m, server := clean()
	m.Metrics = append(m.Metrics, shard.Metric{Name: "data_received", Type: "counter", Sum: 5e6}, shard.Metric{Name: "data_sent", Type: "counter", Sum: 1e6})
	rate := price.Rate{Region: "us-east-1", Hosts: map[string]int{"c5.large": 2, "c6g.large": 1}, PerHour: .5, AsOf: "2026-01-31", Source: "x"}
	v := judgeSoak(m, server, Evidence{Rate: &rate})
	hours := (v.EndedUnix - v.StartedUnix) / 3600
	require.Positive(t, hours)
	require.InDelta(t, 3*hours, v.Cost.InstanceHours, 1e-6)
	require.InDelta(t, .5*hours, v.Cost.USD, 1e-6)
	require.Equal(t, []uint64{5e6, v.Noops.Received}, []uint64{v.Cost.BytesRead, v.Cost.Messages})
	require.InDelta(t, v.Cost.USD/float64(v.Noops.Received)*1e6, *v.Cost.PerMillion, 1e-6)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	var written struct{ Cost map[string]any }
	require.NoError(t, json.Unmarshal(text, &written))
	for _, name := range []string{"usd", "usd_per_million_messages", "instance_hours", "bytes_read", "messages", "hosts", "region", "prices_as_of", "prices_source"} {
		require.Contains(t, written.Cost, name)
	}

	plain := judgeSoak(m, server, Evidence{})
	require.Nil(t, plain.Cost, "nobody said what the machines cost")
	require.Equal(t, v.Verdict, plain.Verdict)
}
