package sizing

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestNeedGrowsWithTheStreams(t *testing.T) {
	t.Parallel()
	small, err := Load{Interval: 15 * time.Second}.Need(1200)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 1200, 1, 1}, []int{small.Runners, small.RunnerHosts, small.Ports, small.SourceAddresses, small.TargetHosts})
	require.InDelta(t, 80, small.NoopsPerSecond, 1e-9)
	prices, err := ReadPrices("")
	require.NoError(t, err)
	require.NoError(t, small.Price(prices, "us-east-1"))
	require.InDelta(t, 2*(.085+.005)+50*.08/730, small.DollarsPerHour, 1e-9)
	require.ErrorContains(t, small.Price(prices, "eu-central-1"), "no price for eu-central-1")
	last := small
	for _, connections := range []int{12_000, 120_000, 1_000_000, 5_000_000} {
		n, err := Load{Interval: 15 * time.Second}.Need(connections)
		require.NoError(t, err)
		require.LessOrEqual(t, (connections-1)/n.Runners+1, streamsPerRunner)
		require.Less(t, n.RunnerFiles, 20_000, "one runner must need fewer than 20,000 open files")
		require.LessOrEqual(t, n.RunnerMemory*runnersPerHost, uint64(usableMemory), "two runners must fit into the memory of a host")
		require.NoError(t, n.Price(prices, "us-east-1"))
		require.GreaterOrEqual(t, n.SourceAddresses*portsPerAddress, n.Ports)
		require.GreaterOrEqual(t, n.Runners, last.Runners)
		require.Greater(t, n.TargetMemory, last.TargetMemory)
		require.GreaterOrEqual(t, n.DollarsPerHour, last.DollarsPerHour)
		last = n
	}
	one, err := Load{Interval: time.Second}.Need(1)
	require.NoError(t, err)
	require.Equal(t, 1, one.Runners)
}

// A million streams with ten noops per second each need more runners than with one noop every 15 s.
func TestDeliveredMessagesNeedCores(t *testing.T) {
	t.Parallel()
	slow, err := Load{Interval: 15 * time.Second}.Need(1_000_000)
	require.NoError(t, err)
	fast, err := Load{Interval: 100 * time.Millisecond}.Need(1_000_000)
	require.NoError(t, err)
	require.InDelta(t, 150*slow.RunnerCores, fast.RunnerCores, 1e-6)
	require.LessOrEqual(t, fast.RunnerCores, runnerCPU*float64(fast.Runners))
	require.Greater(t, fast.Runners, slow.Runners)
	secure, err := Load{Interval: 15 * time.Second, TLS: true}.Need(1_000_000)
	require.NoError(t, err)
	require.Greater(t, secure.RunnerMemory, slow.RunnerMemory)
	require.Greater(t, secure.RunnerCores, slow.RunnerCores)
}

// HTTP/2 streams share connections, so memory, not descriptors, limits the streams of a runner.
func TestSharedConnectionsNeedFewerRunners(t *testing.T) {
	t.Parallel()
	separate, err := Load{Interval: 15 * time.Second}.Need(1_000_000)
	require.NoError(t, err)
	shared, err := Load{Interval: 15 * time.Second, HTTP2: true}.Need(1_000_000)
	require.NoError(t, err)
	require.Equal(t, 10, shared.Runners)
	require.Less(t, shared.RunnerFiles, 2000)
	require.Equal(t, 1, shared.SourceAddresses)
	require.Less(t, shared.TargetFiles, separate.TargetFiles*7/10)
	require.LessOrEqual(t, shared.RunnerMemory*runnersPerHost, uint64(usableMemory), "two runners must fit into the memory of a host")
}

func TestNeedRejectsInvalidLoads(t *testing.T) {
	t.Parallel()
	for _, connections := range []int{0, -1, 10_000_001, 1 << 62} {
		_, err := Load{Interval: time.Second}.Need(connections)
		require.Error(t, err, connections)
	}
	_, err := Load{}.Need(10)
	require.ErrorContains(t, err, "NOOP_INTERVAL must be at least 0.001 seconds, got 0")
}

func TestPublishedMessageReachesTheStreamsOfItsTopic(t *testing.T) {
	t.Parallel()
	n, err := Load{Topics: 12, Rate: 6}.Need(1200)
	require.NoError(t, err)
	require.InDelta(t, 600, n.NoopsPerSecond, 1e-9, "each of the 6 messages per second must reach 100 streams")
	same, err := Load{Interval: 2 * time.Second}.Need(1200)
	require.NoError(t, err)
	same.Topics, same.PublishRate = 12, 6
	require.Equal(t, same, n)
	for want, settings := range map[string][2]float64{
		"TOPICS is 5, but PUBLISH_RATE is 0": {5, 0}, "PUBLISH_RATE is 2, but TOPICS is 0": {0, 2},
		"TOPICS must be at most CONNECTIONS, got 1201 and 1200": {1201, 100}, "PUBLISH_RATE must be from 0.01 to 10000 messages per second, or 0 (publish nothing), got 20000": {100, 20000},
	} {
		_, err := Load{Topics: int(settings[0]), Rate: settings[1]}.Need(1200)
		require.ErrorContains(t, err, want)
	}
}

// Planned figures are at least the measured ones. They exceed the maximum of a run, which includes ramp and end, by at
// most a third.
func TestSizesMatchTheBench(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "results", "bench.json"))
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
	over := func(url string) preflight.StreamCost { return preflight.StreamCostOf(&plan.Plan{BackendURL: url}) }
	plain, secure := over("http://h"), over("https://h")
	type figures struct {
		subject           string
		planned, measured float64
	}
	steady := []figures{
		{"KB per stream of a runner", (memory(10_000, 1) - memory(5000, 1)) / 5000 / 1000, figure("runner, soak script, RSS per connection")},
		{"KB per stream over TLS", float64(secure.Memory) / 1000, figure("tls, TLS 1.3, RSS per connection")},
		{"CPU-s per 1000 noops", 1000 * plain.CPUPerMessage, figure("runner, soak script, CPU-s per 1000 noops")},
		{"CPU-s per 1000 noops over TLS", 1000 * secure.CPUPerMessage, figure("tls, TLS 1.3, CPU-s per 1000 noops")},
		{"MB of a runner with 5000 streams", memory(5000, 1) / 1e6, figure("runner, soak script, RSS at 5000")},
	}
	days, err := Load{Interval: 15 * time.Second, Length: 72 * time.Hour}.Need(1200) // on two runners
	require.NoError(t, err)
	steady = append(steady, figures{"MB of a shard of 72 hours", float64(days.ShardBytes) / 1e6, figure("days, a shard of 72 hours")})
	plain100k, shared200k := scale(t, "scale-100k"), scale(t, "scale-200k-http2")
	shared := preflight.StreamCostOf(&shared200k.Plan)
	steady = append(steady,
		figures{"KB per stream over HTTP/2", float64(shared.Memory) / 1000, figure("http2, HTTP/2, RSS per connection")},
		figures{"KB per stream over HTTP/2 and TLS", float64(shared.Memory) / 1000, figure("http2, HTTP/2 over TLS, RSS per connection")},
		figures{"CPU-s per 1000 noops over HTTP/2", 1000 * shared.CPUPerMessage, figure("http2, HTTP/2, CPU-s per 1000 noops")},
		figures{"CPU-s per 1000 noops over HTTP/2 and TLS", 1000 * shared.CPUPerMessage, figure("http2, HTTP/2 over TLS, CPU-s per 1000 noops")})
	peak := []figures{
		{"maximum MB of a runner with 100,000 streams", plain100k.planned(), plain100k.Resources.RunnerRSSMax / 1e6},
		{"maximum MB of a runner with 200,000 streams over HTTP/2", shared200k.planned(), shared200k.Resources.RunnerRSSMax / 1e6},
		{"CPU-s per 1000 noops of 200,000 streams over HTTP/2", 1000 * shared.CPUPerMessage, 1000 * shared200k.cpu()},
		{"KB per stream of nginx and backend", preflight.PerTargetStream / 1000., figure("nginx, PSS per connection") + figure("backend, RSS per idle connection")},
	}
	for _, c := range append(steady, peak...) {
		require.GreaterOrEqual(t, c.planned, c.measured, c.subject)
	}
	for _, c := range peak {
		require.LessOrEqual(t, c.planned, c.measured*4/3, c.subject)
	}
}

type recordedRun struct {
	Plan    plan.Plan
	Runners []struct {
		Received float64
		CPU      float64 `json:"cpu_seconds"`
	}
	Resources struct {
		RunnerRSSMax float64 `json:"runner_rss_max_bytes"`
	}
}

func scale(t *testing.T, name string) (r recordedRun) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "results", name, "verdict.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// planned returns the planned memory of a runner in MB.
func (r recordedRun) planned() float64 {
	return float64(preflight.Memory(r.Plan, preflight.Services{})) / float64(r.Plan.Runners) / 1e6
}

// cpu returns the CPU seconds per noop, including ramp and end.
func (r recordedRun) cpu() float64 {
	var seconds, noops float64
	for _, runner := range r.Runners {
		seconds, noops = seconds+runner.CPU, noops+runner.Received
	}
	return seconds / noops
}
