package sizing

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/preflight"
	"github.com/sse-soak/sse-soak/internal/price"
)

func TestNeedGrowsWithTheStreams(t *testing.T) {
	t.Parallel()
	small, err := Load{Interval: 15 * time.Second}.Need(1200)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 1200, 1, 1}, []int{small.Runners, small.RunnerHosts, small.Ports, small.SourceAddresses, small.TargetHosts})
	require.InDelta(t, 80, small.NoopsPerSecond, 1e-9)
	prices, err := price.Read("")
	require.NoError(t, err)
	require.NoError(t, small.Price(prices, "us-east-1"))
	require.InDelta(t, 2*(.085+.005)+50*.08/730, small.DollarsPerHour, 1e-9)
	require.ErrorContains(t, small.Price(prices, "eu-central-1"), "no price known for eu-central-1")
	last := small
	for _, connections := range []int{12_000, 120_000, 1_000_000, 5_000_000} {
		n, err := Load{Interval: 15 * time.Second}.Need(connections)
		require.NoError(t, err)
		require.LessOrEqual(t, (connections-1)/n.Runners+1, StreamsPerRunner)
		require.Less(t, n.RunnerFiles, 20_000, "of one process")
		require.LessOrEqual(t, n.RunnerMemory*RunnersPerHost, uint64(UsableMemory), "two of them on a host")
		require.NoError(t, n.Price(prices, "us-east-1"))
		require.GreaterOrEqual(t, n.SourceAddresses*PortsPerAddress, n.Ports)
		require.GreaterOrEqual(t, n.Runners, last.Runners)
		require.Greater(t, n.TargetMemory, last.TargetMemory)
		require.GreaterOrEqual(t, n.DollarsPerHour, last.DollarsPerHour)
		last = n
	}
	one, err := Load{Interval: time.Second}.Need(1)
	require.NoError(t, err)
	require.Equal(t, 1, one.Runners)
}

// A noop a second to a million streams is more than the cores of the hosts that hold them could take in.
func TestWhatReachesTheStreamsTakesCores(t *testing.T) {
	t.Parallel()
	slow, err := Load{Interval: 15 * time.Second}.Need(1_000_000)
	require.NoError(t, err)
	fast, err := Load{Interval: 100 * time.Millisecond}.Need(1_000_000)
	require.NoError(t, err)
	require.InDelta(t, 150*slow.RunnerCores, fast.RunnerCores, 1e-6)
	require.LessOrEqual(t, fast.RunnerCores, RunnerCPU*float64(fast.Runners))
	require.Greater(t, fast.Runners, slow.Runners)
	secure, err := Load{Interval: 15 * time.Second, TLS: true}.Need(1_000_000)
	require.NoError(t, err)
	require.Greater(t, secure.RunnerMemory, slow.RunnerMemory)
	require.Greater(t, secure.RunnerCores, slow.RunnerCores)
}

func TestNeedOfNothingIsRefused(t *testing.T) {
	t.Parallel()
	for _, connections := range []int{0, -1, 10_000_001, 1 << 62} {
		_, err := Load{Interval: time.Second}.Need(connections)
		require.Error(t, err, connections)
	}
	_, err := Load{}.Need(10)
	require.ErrorContains(t, err, "NOOP_INTERVAL is 0")
}

func TestAPublishedMessageReachesTheStreamsOfItsTopic(t *testing.T) {
	t.Parallel()
	n, err := Load{Topics: 12, Rate: 6}.Need(1200)
	require.NoError(t, err)
	require.InDelta(t, 600, n.NoopsPerSecond, 1e-9, "each of 6 reaches 100 streams")
	same, err := Load{Interval: 2 * time.Second}.Need(1200)
	require.NoError(t, err)
	same.Topics, same.PublishRate = 12, 6
	require.Equal(t, same, n)
	for want, settings := range map[string][2]float64{
		"TOPICS is 5, but PUBLISH_RATE is 0": {5, 0}, "PUBLISH_RATE is 2, but TOPICS is 0": {0, 2},
		"TOPICS is 1201, but there are only 1200 streams": {1201, 100}, "PUBLISH_RATE is 20000": {100, 20000},
	} {
		_, err := Load{Topics: int(settings[0]), Rate: settings[1]}.Need(1200)
		require.ErrorContains(t, err, want)
	}
}

// What is planned with is at least what was measured in the steady state, and what a run took at
// most rounded up by a third at the most: a ramp leaves garbage, and ends need memory.
func TestSizesMatchTheBench(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "results", "bench.json"))
	require.NoError(t, err)
	var bench struct {
		Figures []struct {
			Section, Name string
			Value         float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &bench))
	measured := map[string]float64{}
	for _, f := range bench.Figures {
		measured[f.Section+", "+f.Name] = f.Value
	}
	figure := func(name string) float64 {
		require.Contains(t, measured, name)
		return measured[name]
	}
	p := plan.Default()
	p.Runners = 1
	memory := func(connections, users int) float64 {
		p.Connections, p.ConnectionsPerVU = connections, max(connections/users, 1)
		return float64(preflight.Memory(p, preflight.Services{Count: 1}))
	}
	over := func(url string) preflight.Wire { return preflight.WireOf(&plan.Plan{BackendURL: url}) }
	plain, secure := over("http://h"), over("https://h")
	type figures struct {
		what              string
		planned, measured float64
	}
	steady := []figures{
		{"KB per stream of a runner", (memory(10_000, 1) - memory(5000, 1)) / 5000 / 1000, figure("runner, soak script, RSS per connection")},
		{"KB per stream over TLS", float64(secure.Stream) / 1000, figure("tls, TLS 1.3, RSS per connection")},
		{"CPU-s per 1000 noops", 1000 * plain.Noop, figure("runner, soak script, CPU-s per 1000 noops")},
		{"CPU-s per 1000 noops over TLS", 1000 * secure.Noop, figure("tls, TLS 1.3, CPU-s per 1000 noops")},
		{"MB of a runner with 5000 streams", memory(5000, 1) / 1e6, figure("runner, soak script, RSS at 5000")},
	}
	var scale struct {
		Plan      plan.Plan
		Resources struct {
			RunnerRSSMax float64 `json:"runner_rss_max_bytes"`
		}
	}
	text, err = os.ReadFile(filepath.Join("..", "..", "docs", "results", "scale-100k", "verdict.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &scale))
	each := preflight.Memory(scale.Plan, preflight.Services{}) / uint64(scale.Plan.Runners)
	peak := []figures{
		{"MB of a runner of 100,000 streams at most", float64(each) / 1e6, scale.Resources.RunnerRSSMax / 1e6},
		{"KB per stream of nginx and backend", preflight.PerTargetStream / 1000., figure("nginx, PSS per connection") + figure("backend, RSS per idle connection")},
	}
	for _, c := range append(steady, peak...) {
		require.GreaterOrEqual(t, c.planned, c.measured, c.what)
	}
	for _, c := range peak {
		require.LessOrEqual(t, c.planned, c.measured*4/3, c.what)
	}
}
