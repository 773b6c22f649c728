package report

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The simulated run: its start, the duration of connecting, and its faults.
const (
	simulatedStart   = 1_700_000_000 // Unix, seconds
	simulatedConnect = 10            // seconds
	retransmitsAt    = 600           // seconds after the start: lateness and retransmits, together
	leakPerHour      = 36 << 20      // bytes

	step = int64(shard.BucketWidth / time.Second)
)

// Exported for the tests of pages, in package report_test.
var (
	InjectMarkup = injectMarkup
	SimulatedRun = simulatedRun
	NewVerdict   = newVerdict
)

// SimulatedStart is the start of the simulated run.
const SimulatedStart = simulatedStart

// simulatedRun returns a run of two runners with late messages and TCP retransmits at one time, a backend that leaks,
// one lost noop, one refused connection and one outage. Equal arguments yield equal runs.
func simulatedRun(connections, seconds int) *Run {
	p := plan.Default()
	p.TestID, p.Prefix, p.Connections, p.Seconds, p.BackendURL, p.Reconnect = "madeup", "d-", connections, seconds, "http://127.0.0.1:41234", true
	p.ConnectionsPerVU = 50
	random := rand.New(rand.NewPCG(1, 2))
	server := verdict.ServerLedger{}
	var shards []*shard.Shard
	for i := 1; i <= p.Runners; i++ {
		shards = append(shards, simulatedShard(p, i, random, server))
	}
	m := shard.Merge(p, shards)
	samples := simulatedSamples(p)
	v, err := suite.Judge(&verdict.Evidence{Rounds: []*shard.Merged{m}, Server: server, Samples: samples, OneHost: true})
	if err != nil {
		panic(err)
	}
	return &Run{Verdict: v, Merged: m, Samples: samples, Provenance: Provenance{
		Command: []string{"bin/soak", "run"}, Version: "abc123", Backend: "abc123", Nginx: "nginx/1.22.1", OneClock: true,
		Machine: resources.Machine{Name: "host-a", System: "debian 12", Kernel: "6.1", CPU: "Some CPU", Cores: 2, Memory: 8 << 30},
		Limits:  preflight.Machine{Files: 20_000, Ports: 28_232, Backlog: 4096},
	}, Files: []File{
		{Name: "verdict.json", Content: []byte("{\"testid\": \"madeup\"}\n")},
		{Name: "connections.csv", Content: []byte("id\n")},
		{Name: "series.csv", Content: []byte("unix_s\n")},
	}}
}

// newVerdict returns the verdict from shards alone.
func newVerdict(t *testing.T, m *shard.Merged) *verdict.Verdict {
	t.Helper()
	v, err := suite.Judge(&verdict.Evidence{Rounds: []*shard.Merged{m}})
	require.NoError(t, err)
	return v
}

// simulatedShard returns the shard of one runner, and adds its clients to the ledger of the server.
func simulatedShard(p plan.Plan, index int, random *rand.Rand, server verdict.ServerLedger) *shard.Shard {
	s := &shard.Shard{
		Schema: shard.Schema, Plan: p, Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
		Runner: shard.Runner{
			TestID: p.TestID, Index: index, Segment: []string{"0:1/2", "1/2:1"}[index-1], Script: "connectionTest.js", ScriptHash: "0123456789abcdef",
			K6Version: "v2.2.0", Host: "host-a", State: shard.Finished, CPUSeconds: float64(p.Seconds) / 50, RSSMax: 80 << 20,
			StartedUS: simulatedStart * 1e6, EndedUS: int64(simulatedStart+p.Seconds) * 1e6,
		},
	}
	noops := uint64(p.MinNoopsPerStream())
	first, last := (index-1)*p.Connections/p.Runners, index*p.Connections/p.Runners
	for n := first; n < last; n++ {
		opened := time.Duration(n-first) * simulatedConnect * time.Second / time.Duration(last-first)
		connect := time.Duration(2+random.IntN(8)) * time.Millisecond
		r := ledger.Record{
			ID: p.ClientID(n), State: ledger.Completed, Reason: "server", Numbered: true, Attempts: 1, Streams: 1, Connect: connect,
			OpenedAt: opened, ClosedAt: opened + p.Hold(), StreamTime: p.Hold(), Last: noops,
			Counts: ledger.Counts{Received: noops},
		}
		s.Connect.Record(connect)
		s.FirstMessage.Record(time.Duration(random.IntN(15000)) * time.Millisecond)
		server[r.ID] = verdict.ServerEntry{ID: r.ID, First: 1, Last: noops, Sent: noops}
		s.Connections = append(s.Connections, r)
	}
	if index == 2 { // faults
		lossy, refused, reconnected := &s.Connections[0], &s.Connections[1], &s.Connections[2]
		lossy.Received, lossy.Lost = noops-1, 1
		lossy.Findings = []ledger.Finding{{Kind: ledger.KindLost, From: 7, To: 7, Count: 1, At: 121 * time.Second}}
		delete(server, refused.ID)
		*refused = ledger.Record{
			ID: refused.ID, State: ledger.Refused, Reason: "status 503", Attempts: 1, Connect: 250 * time.Millisecond, ClosedAt: 3 * time.Second,
			Findings: []ledger.Finding{{Kind: ledger.KindRefused, At: 3 * time.Second, Note: "status 503"}},
		}
		reconnected.Streams, reconnected.Attempts, reconnected.Outages = 2, 3, []ledger.Outage{{From: 100 * time.Second, To: 101500 * time.Millisecond}}
		reconnected.Survived, reconnected.Longest, reconnected.OutageTime, reconnected.OpenTime = 1, reconnected.Outages[0], 1503*time.Millisecond, 3593500*time.Millisecond
		reconnected.Refusals = []ledger.Refusal{{Reason: "status 503", Count: 1, First: 101 * time.Second, Last: 101 * time.Second}}
	}
	addSimulatedBuckets(s, p, last-first, random)
	opened := int64(len(s.Connections))
	s.Checks = []shard.ScriptCheck{{Name: "Get status was 200", Passes: opened - int64(index-1), Fails: int64(index - 1)}}
	return s
}

func addSimulatedBuckets(s *shard.Shard, p plan.Plan, connections int, random *rand.Rand) {
	end := p.Seconds - plan.DisconnectLead
	for at := 0; at < p.Seconds; at += int(step) {
		b := shard.Bucket{Unix: int64(simulatedStart + at), Open: connections, ProcessUsage: shard.ProcessUsage{RSS: uint64(70<<20 + random.IntN(1<<20)), CPUPercent: 2, Goroutines: 20, Files: connections + 12}}
		switch {
		case at < simulatedConnect:
			b.Opened, b.CPUPercent = connections*int(step)/simulatedConnect, 40
			b.Open = min(connections, b.Opened*(at/int(step)+1))
		case at >= end-int(step):
			b.Closed, b.Open = connections, 0
		}
		if at%int(p.NoopInterval) == 0 && at > 0 && at < end {
			b.Noops = connections
			h := shard.NewHistogram()
			for range min(connections, 50) { // a sample of the lateness represents all messages
				late := time.Duration(random.ExpFloat64() * float64(time.Millisecond))
				if at == retransmitsAt {
					late += 400 * time.Millisecond
				}
				h.Record(late)
			}
			s.Lateness.Merge(h)
			b.Lateness = h.Pack()
		}
		s.Series = append(s.Series, b)
	}
}

func simulatedSamples(p plan.Plan) (out []resources.Sample) {
	cpu, busy, retransmits := 1.0, 100.0, uint64(50)
	for at := 0; at < p.Seconds; at += int(step) {
		use, streams := .01, p.Connections
		if 0 < at && at <= simulatedConnect {
			use, streams = 1, p.Connections*at/simulatedConnect
		}
		if at == 0 {
			streams = 0
		}
		cpu, busy = cpu+use, busy+2+use
		if at == retransmitsAt+int(step) {
			retransmits += 300
		}
		out = append(out, resources.Sample{
			Unix: int64(simulatedStart + at), BackendRSS: uint64(20<<20 + leakPerHour*at/3600), BackendCPU: cpu, Streams: streams, Goroutines: 12, Files: streams + 10,
			BackendGCs: uint64(1 + at/120), BackendGCSeconds: float64(1+at/120) * 1e-4, NginxRSS: 30 << 20, NginxCPU: cpu / 2, NginxFiles: 2*streams + 20,
			Host: resources.Host{BusySeconds: busy, Available: 6 << 30, NetworkKnown: true, Retransmits: retransmits},
		})
	}
	return out
}
