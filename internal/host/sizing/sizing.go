// Package sizing computes the resources that a number of streams needs: runners, memory, descriptors, ports, hosts and
// money. It uses the figures of preflight; a test compares them with the measurements of `make bench`
// (docs/results/bench.json). Prices are dated AWS on-demand prices in US dollars (prices.json).
package sizing

import (
	"fmt"
	"math"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Figures for a Need. Each host is a c5.large with a public address and a disk of the size in infra/terraform.
const (
	streamsPerRunner = 19_000  // of 20,000 descriptors; the rest are for requests and k6 itself
	sharedPerRunner  = 100_000 // over HTTP/2, as measured; the connections use at most 1000 descriptors
	runnersPerHost   = 2       // one per core
	runnerCPU        = .5      // maximum share of a core for messages; a busier runner delays them
	portsPerAddress  = 28_232  // Linux's default range, for one source and one target address
	hostMemory       = 4 << 30
	usableMemory     = hostMemory / 4 * 3 // the kernel needs the other quarter for sockets and page cache
	HostType         = "c5.large"
	shardBase        = 256 << 10 // bytes of a shard without streams
	shardPerHour     = 160       // bytes of a shard per stream and hour
	runnerDiskGiB    = 20
	targetDiskGiB    = 30
)

// A Need has the resources that a soak with a number of streams needs. Memory is in bytes, money in US dollars.
type Need struct {
	Connections     int     `json:"connections"`
	NoopsPerSecond  float64 `json:"noops_per_second"` // messages that reach streams
	Topics          int     `json:"topics,omitempty"`
	PublishRate     float64 `json:"published_per_second,omitempty"` // each message reaches all streams of its topic
	Runners         int     `json:"runners"`
	RunnerMemory    uint64  `json:"runner_memory_bytes"`       // of each
	RunnerCores     float64 `json:"runner_cores"`              // for received messages, over all runners
	RunnerFiles     int     `json:"runner_open_files"`         // of each
	ShardBytes      uint64  `json:"shard_bytes"`               // of each runner, at the end
	CheckpointBytes uint64  `json:"checkpoint_bytes_per_hour"` // maximum per runner
	RunnerHosts     int     `json:"runner_hosts"`
	Ports           int     `json:"ports_per_host"`            // ephemeral, on a host of runners
	SourceAddresses int     `json:"source_addresses_per_host"` // for connections to one address of the target
	TargetMemory    uint64  `json:"target_memory_bytes"`       // nginx and backend, over all hosts
	TargetFiles     int     `json:"target_open_files"`         // nginx and backend, over all hosts
	TargetHosts     int     `json:"target_hosts"`
	HostType        string  `json:"host_type"`
	DollarsPerHour  float64 `json:"dollars_per_hour"`
}

// A Load describes the messages and streams of a service.
type Load struct {
	Interval time.Duration // between two noops, unless messages are published
	Topics   int           // topics with a publisher, distributed over the streams; 0: noops
	Rate     float64       // published messages per second, over all topics
	TLS      bool
	HTTP2    bool // streams share connections
	// Length is the length of the run, and Checkpoint the time between the last two checkpoints of a runner.
	Length, Checkpoint time.Duration
}

// Need returns the resources that the given number of streams needs.
func (l Load) Need(connections int) (Need, error) {
	p := plan.Default()
	if l.Topics == 0 && l.Rate == 0 {
		p.NoopInterval = l.Interval.Seconds()
	} else {
		p.Service, p.Topics, p.PublishRate = "published", l.Topics, l.Rate // any name except noop
		if p.Published() {
			p.NoopInterval = p.PublishInterval()
		}
	}
	if l.TLS {
		p.BackendURL = "https://service" // any https URL
	}
	if l.HTTP2 {
		p.HTTPVersion = plan.HTTP2
	}
	n, err := needOf(connections, p)
	if err != nil {
		return Need{}, err
	}
	n.ShardBytes = shardBase + uint64(float64(shardPerHour*ceil(n.Connections, n.Runners))*l.Length.Hours())
	// Each checkpoint is a whole shard.
	n.CheckpointBytes = uint64(float64(n.ShardBytes) * float64(time.Hour) / float64(max(l.Checkpoint, time.Second)))
	return n, nil
}

func needOf(connections int, p plan.Plan) (Need, error) {
	p.Connections = connections
	noops := float64(connections) / p.NoopInterval
	cores := noops * preflight.StreamCostOf(&p).CPUPerMessage
	perRunner := streamsPerRunner
	if p.HTTPVersion == plan.HTTP2 {
		perRunner = sharedPerRunner
	}
	p.Runners = max(ceil(connections, perRunner), min(max(p.Runners, int(math.Ceil(cores/runnerCPU))), connections))
	p.ConnectionsPerVU = p.StreamsPerVU()
	p.Seconds = max(p.Seconds, int(3*p.NoopInterval))
	if err := p.Check(); err != nil {
		return Need{}, fmt.Errorf("plan a run with CONNECTIONS=%d: %w", connections, err)
	}
	single := p
	single.Connections, single.Runners = p.PerRunner(), 1
	sockets := p.Sockets(p.PerRunner())
	perHost := min(p.Runners, runnersPerHost) * sockets
	n := Need{
		Connections: connections, NoopsPerSecond: noops, RunnerCores: cores, HostType: HostType, Topics: p.Topics, PublishRate: p.PublishRate,
		Runners: p.Runners, RunnerMemory: preflight.Memory(single, preflight.Services{Count: 1}), RunnerFiles: preflight.Files(sockets),
		RunnerHosts: ceil(p.Runners, runnersPerHost), Ports: perHost, SourceAddresses: ceil(perHost, portsPerAddress),
		TargetMemory: clamp.Uint64(connections) * preflight.PerTargetStream, TargetFiles: p.Sockets(connections) + 2*connections,
	}
	n.TargetHosts = ceil(clamp.Int(n.TargetMemory), usableMemory)
	return n, nil
}

// Price sets DollarsPerHour to the cost of all hosts at the prices of a region.
func (n *Need) Price(t Prices, region string) (err error) {
	hosts := map[string]int{n.HostType: n.RunnerHosts + n.TargetHosts}
	n.DollarsPerHour, err = t.PerHour(region, hosts, n.RunnerHosts*runnerDiskGiB+n.TargetHosts*targetDiskGiB)
	return err
}

// ceil returns n / divisor, rounded up.
func ceil(n, divisor int) int { return (n + divisor - 1) / divisor }
