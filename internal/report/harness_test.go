package report

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var update = flag.Bool("update", false, "update the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run `go test ./internal/report -update` to write the file")
	require.Equal(t, string(want), string(got))
}

// newRun returns a run with results of each kind.
func newRun() (*shard.Merged, *verdict.Verdict, []resources.Sample) {
	const start = 1_700_000_000
	p := plan.Default()
	p.TestID, p.Prefix, p.Connections, p.BackendURL, p.MaxLate, p.Reconnect = "20231114-221320", "d-", 4, "http://127.0.0.1:41234", 3, true
	lateness, connect := shard.NewHistogram(), shard.NewHistogram()
	for ms := range 100 {
		lateness.Record(time.Duration(ms) * time.Millisecond)
		connect.Record(time.Duration(ms) * 50 * time.Microsecond)
	}
	m := &shard.Merged{
		Plan: p, Service: shard.ServiceOf(service.Noop(p.Interval())), Connect: connect, FirstMessage: shard.NewHistogram(), Lateness: lateness,
		Runners: []shard.Runner{
			{Index: 1, Host: "host-a", Segment: "0:1/2", State: shard.Finished, RSSMax: 120 << 20, CPUSeconds: 40.25, StartedUS: start * 1e6, EndedUS: (start + 3600) * 1e6},
			{Index: 2, Host: "host-b", Segment: "1/2:1", State: shard.Finished, RSSMax: 3 << 30, CPUSeconds: 36, StartedUS: start * 1e6, EndedUS: (start + 3601) * 1e6},
		},
		Checks: []shard.ScriptCheck{{Name: "Get status was 200", Passes: 4}, {Name: "Received all messages", Passes: 2, Fails: 2}},
	}
	complete := func(id string) ledger.Record {
		return ledger.Record{
			ID: id, State: ledger.Completed, Reason: "server", Numbered: true, Attempts: 1, Streams: 1, Connect: 3 * time.Millisecond,
			OpenedAt: time.Second, ClosedAt: 3596 * time.Second, StreamTime: 3595 * time.Second, OpenTime: 3595 * time.Second, Last: 239,
			MaxGap: 15010 * time.Millisecond, MaxLateness: 10 * time.Millisecond,
			Counts: ledger.Counts{Received: 239},
		}
	}
	lossy, corrupt, reconnected := complete("d-1"), complete("d-2"), complete("d-3")
	lossy.Received, lossy.Lost, lossy.Late = 238, 1, 1
	lossy.Findings = []ledger.Finding{
		{Kind: ledger.KindLost, From: 7, To: 7, Count: 1, At: 121 * time.Second},
		{Kind: ledger.KindLate, From: 9, At: 150 * time.Second, Lateness: 1200 * time.Millisecond},
	}
	lossy.Unlisted = 2
	corrupt.Received, corrupt.Corrupted = 238, 1
	corrupt.Findings = []ledger.Finding{{Kind: ledger.KindCorrupted, From: 3, At: 46 * time.Second, Note: "=HYPERLINK(\"http://x|<b>\"), *bold*\n# `head`"}}
	reconnected.Streams, reconnected.Attempts, reconnected.Outages = 2, 3, []ledger.Outage{{From: 100 * time.Second, To: 101500 * time.Millisecond}}
	reconnected.Survived, reconnected.Longest, reconnected.OutageTime, reconnected.OpenTime = 1, reconnected.Outages[0], 1503*time.Millisecond, 3593500*time.Millisecond
	reconnected.Refusals = []ledger.Refusal{{Reason: "status 503", Count: 1, First: 101 * time.Second, Last: 101 * time.Second}}
	for _, c := range []shard.Connection{{Record: complete("d-0")}, {Record: lossy}, {Record: corrupt, Runner: 1}, {Record: reconnected, Runner: 1}} {
		m.Connections.Add(&c)
	}
	m.Series = []shard.Bucket{
		{Unix: start, Open: 4, Opened: 4, ProcessUsage: shard.ProcessUsage{RSS: 100 << 20, HeapLive: 30 << 20, CPUPercent: 12.34, Goroutines: 40}},
		{Unix: start + 5, Open: 4, Noops: 4, Late: 1, Faults: 1, Lateness: lateness.Pack(), ProcessUsage: shard.ProcessUsage{RSS: 110 << 20, HeapLive: 31 << 20, CPUPercent: 2, Goroutines: 41, Threads: 11, GCPauseUS: 99, RunDelayMS: 3, StallMS: 4}},
		{Unix: start + 10, Closed: 4},
	}
	samples := []resources.Sample{
		{Unix: start + 1, BackendRSS: 20 << 20, BackendCPU: 1, Streams: 4, Goroutines: 9, Files: 12, NginxRSS: 8 << 20, NginxCPU: .5},
		{
			Unix: start + 6, BackendRSS: 21 << 20, BackendCPU: 1.5, Streams: 4, Goroutines: 9, Files: 12, BackendThreads: 7, NginxRSS: 8 << 20, NginxCPU: .6, NginxThreads: 3,
			Host: resources.Host{System: resources.System{Received: 5000, Transmitted: 7000, LookupMS: 1.5}},
		},
		{Unix: start + 11, BackendRSS: 19 << 20, BackendCPU: .1, NginxRSS: 8 << 20, NginxCPU: .6}, // a new backend
	}
	for i := range m.Runners { // each has its own machine; the conntrack table of the second one is almost full
		w := machine.NewRemote("", time.Second)
		w.Add(m.Runners[i].Started(), machine.Reading{machine.Steal: 0, machine.OutSegs: 0, machine.Retrans: 0, machine.Overflows: 7, machine.Drops: 7, "pps_allowance_exceeded": 0, machine.OOMKills: 2})
		w.Add(m.Runners[i].Started().Add(time.Hour), machine.Reading{
			machine.Steal: .25, machine.OutSegs: 100_000, machine.Retrans: 12, machine.Overflows: 7 + float64(i), machine.Drops: 8 + float64(i), "pps_allowance_exceeded": 14 * float64(i),
			machine.OOMKills: 2, machine.ConntrackEntries: 1000 + 950*float64(i), "nf_conntrack_max": 2000,
		})
		m.Runners[i].Machine = w.Record()
		m.Runners[i].Machine.Boot, m.Runners[i].Machine.Cores = fmt.Sprint("boot-", i), 2
	}
	group := shard.Control{URL: "http://host-b:7070", Remote: true, Streams: 20, LateMS: 1000, Opened: 20, ControlCounts: shard.ControlCounts{Expected: 72_000, Received: 72_000, Late: 20, LongestUS: 1_300_000}}
	m.Control = &group
	for i := range m.Runners {
		m.Runners[i].ControlGroup = &shard.RunnerControl{Control: group}
	}
	m.Runners[0].ControlGroup.Moments = []shard.ControlMoment{{At: time.Unix(start+150, 0), Longest: 1300 * time.Millisecond, Late: 1}}
	m.EndRequests = new(shard.EndRequests)
	for i, duration := range []time.Duration{8 * time.Millisecond, 21 * time.Millisecond, 1300 * time.Microsecond} {
		m.EndRequests.Add(fmt.Sprintf("backend-%d", 1+i%2), shard.CodeOK, time.Unix(start+3595, 0).Add(duration), duration)
	}
	m.EndRequests.Add("backend-2", shard.CodeStatus+"404", time.Unix(start+3596, 0), 2*time.Millisecond)
	m.Redirects = []shard.Redirect{{Origin: "http://127.0.0.1:41235", Streams: 1}}
	server := verdict.ServerLedger{}
	for _, c := range m.Connections.All() {
		server[c.ID] = verdict.ServerEntry{ID: c.ID, First: 1, Last: 239, Sent: 239}
	}
	v, err := suite.Judge(&verdict.Evidence{
		Rounds: []*shard.Merged{m}, Server: server, OneHost: true,
		Failures: []verdict.TargetFailure{{Unix: start + 400, Text: "the backend died at 22:20:00 UTC (signal: killed) and was restarted"}},
		Warnings: []string{"1000 MiB of memory is available, but the run may use 2000 MiB; raise CONNECTIONS_PER_VU to share virtual users, or lower CONNECTIONS"},
		RunInfo: &verdict.RunInfo{
			Command: []string{"env", "CONNECTIONS=4", "bin/soak", "run", "--at", "30m reload: true"}, Commit: "0123456789ab+dirty", Soak: "v1.2.3", Go: "go1.26.8", Backend: "devel", Nginx: "nginx/1.22.1",
			Machine: resources.Machine{Name: "host-a", System: "debian 12.11", Kernel: "6.1", CPU: "Some | CPU", Cores: 2, Memory: 8 << 30},
		},
	})
	if err != nil {
		panic(err)
	}
	v.Resources.SystemSummary = resources.SystemSummary{
		BackendThreads: 7, NginxThreads: 3, RunnerThreads: 11, Received: 40 << 20, Transmitted: 41 << 20, Lookups: 12, LookupP50: 1.5, LookupMax: 80,
	}
	v.Resources.BackendRSSMax, v.Resources.BackendCPUAverage, v.Resources.NginxRSSMax = 21<<20, 4.25, 8<<20
	return m, v, samples
}

func outputs() map[string]func(io.Writer) error {
	m, v, samples := newRun()
	return map[string]func(io.Writer) error{
		"report.txt":      func(w io.Writer) error { return Text(w, Brief(v)) },
		"report.md":       func(w io.Writer) error { return Markdown(w, Brief(v)) },
		"connections.csv": func(w io.Writer) error { return ConnectionsCSV(w, m, v) },
		"series.csv":      func(w io.Writer) error { return SeriesCSV(w, m, v, samples) },
	}
}

func output(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, write(&b))
	return b.String()
}

func textOf(t *testing.T, p *Page) string {
	t.Helper()
	return output(t, func(w io.Writer) error { return Text(w, p) })
}

func markdownOf(t *testing.T, p *Page) string {
	t.Helper()
	return output(t, func(w io.Writer) error { return Markdown(w, p) })
}

// injectMarkup replaces each text of a verdict that a service or a user controls with the given text.
func injectMarkup(v *verdict.Verdict, text string) {
	v.TestID, v.Plan.BackendURL, v.Plan.Prefix = text, text, text
	v.Reasons, v.Warnings = []string{text}, []string{text}
	v.Checks = []verdict.Check{{Name: text, Limit: text, Actual: text, Why: text}}
	v.ScriptChecks = []shard.ScriptCheck{{Name: text, Passes: 1}}
	v.Findings = []verdict.Finding{{Kind: text, ID: text, Text: text}}
	v.RefusedAttempts, v.LongestOutage = map[string]int{text: 1}, &verdict.Outage{ID: text, Seconds: 1}
	v.Runners = []verdict.Runner{{Index: 1, Host: text, Segment: text, State: text, K6Version: text}}
	v.Machines = []verdict.MachineReport{{Name: text, Runners: []int{1}, Unknown: text, Notices: []machine.Notice{{Name: text}}}}
}

// uncheckedVerdict returns the verdict of a run that passed but checked no messages.
func uncheckedVerdict() *verdict.Verdict {
	v := &verdict.Verdict{TestID: "t", Verdict: verdict.Pass, Plan: plan.Default(), Reasons: []string{"messages were not checked: the service description has message: 'unchecked'"}}
	v.Plan.Service = "sse"
	v.Service, v.Evidence.Kind = shard.Service{Name: "sse", CountBasis: shard.CountNothing}, verdict.ByNothing
	v.Messages.Heartbeats, v.Messages.Unchecked, v.Messages.Uncounted = 4, 304, 1
	v.Checks = []verdict.Check{verdict.Check{Name: "messages checked", Limit: "no limit", Pass: true}.NotJudged("no rule is defined")}
	return v
}
