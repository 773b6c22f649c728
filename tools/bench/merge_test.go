package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// writeRun writes the folder of a run without faults.
func writeRun(ctx context.Context, d results.Dir, p plan.Plan) error {
	if err := os.MkdirAll(d.Path(results.ShardsDir), 0o755); err != nil {
		return err
	}
	start := time.Unix(1_800_000_000, 0)
	for n := 1; n <= p.Runners && ctx.Err() == nil; n++ {
		s := newShard(p, n, start)
		if err := shard.Write(d.Path(filepath.Join(results.ShardsDir, shard.FileName(s.Runner))), s); err != nil {
			return err
		}
	}
	sent := p.MinNoopsPerStream()
	var run results.RunRecord
	run.OneClock = true
	return errors.Join(
		ctx.Err(), d.WriteJSON(results.PlanFile, p), d.WriteJSON(results.RunFile, run),
		d.Write(results.LedgerFile, func(w io.Writer) error {
			for n := range p.Connections {
				if _, err := fmt.Fprintf(w, `{"id":%q,"open":false,"first":1,"last":%d,"sent":%[2]d,"slow":false}`+"\n", p.ClientID(n), sent); err != nil {
					return err
				}
			}
			return nil
		}))
}

// newShard returns the shard of one runner without faults.
func newShard(p plan.Plan, runner int, start time.Time) *shard.Shard {
	r := rand.New(rand.NewPCG(1, uint64(runner))) // each repetition writes the same files
	finish := start.Add(time.Duration(p.Seconds) * time.Second)
	s := &shard.Shard{
		Schema: shard.Schema, Plan: p, Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
		Runner: shard.Runner{
			TestID: p.TestID, Index: runner, Segment: runners.Segment(runner, p.Runners), Script: "connectionTest.js", State: shard.Finished,
			StartedUS: start.UnixMicro(), EndedUS: finish.UnixMicro(), Checkpoints: 1 + p.Seconds/30,
		},
	}
	noops := p.MinNoopsPerStream()
	first, end := (runner-1)*p.Connections/p.Runners, runner*p.Connections/p.Runners
	streams := end - first
	for _, name := range []string{"Get status was 200", "Delete status was 200", "Received all messages"} {
		s.Checks = append(s.Checks, shard.ScriptCheck{Name: name, Passes: int64(streams)})
	}
	for i := first; i < end; i++ {
		connect := time.Duration(r.ExpFloat64() * float64(5*time.Millisecond))
		s.Connect.Record(connect)
		c := ledger.Record{
			ID: p.ClientID(i), State: ledger.Completed, Reason: "server_closed", Numbered: true, Attempts: 1, Streams: 1,
			Connect: connect, OpenedAt: connect, ClosedAt: p.Hold() + connect, StreamTime: p.Hold(), OpenTime: p.Hold(), Last: uint64(noops), Numberings: 1,
			MaxGap: p.Interval() + connect, MaxLateness: connect,
			Counts: ledger.Counts{Received: uint64(noops)},
		}
		if i%10 == 0 {
			c.Late = 1
			c.Findings = []ledger.Finding{{Kind: ledger.KindLate, From: 7, At: time.Minute, Lateness: 2 * time.Second}}
		}
		s.Connections = append(s.Connections, c)
	}
	width := int64(shard.BucketWidth / time.Second)
	bucket := shard.NewHistogram()
	for at := start.Unix() / width * width; at < finish.Unix(); at += width {
		bucket.Reset()
		for range streams / 3 {
			bucket.Record(time.Duration(r.ExpFloat64() * float64(2*time.Millisecond)))
		}
		s.Lateness.Merge(bucket)
		s.Series = append(s.Series, shard.Bucket{
			Unix: at, Open: streams, Noops: streams / 3, ProcessUsage: shard.ProcessUsage{RSS: 80 << 20, CPUPercent: 3, Goroutines: 100}, Lateness: bucket.PackCoarse(),
		})
	}
	return s
}

// BenchmarkMerge measures `soak merge` of a large run of an hour.
func BenchmarkMerge(b *testing.B) {
	for b.Loop() {
		p := plan.Default()
		p.Runners, p.Connections = size.shards, size.shards*size.ledgers
		merge(b, p)
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkDays measures `soak merge` of a run of several days, and the sizes of its shards and its page.
func BenchmarkDays(b *testing.B) {
	for b.Loop() {
		p := plan.Default()
		p.Runners, p.Seconds = 2, size.days*24*3600
		d := merge(b, p)
		shards, err := filepath.Glob(d.Path(filepath.Join(results.ShardsDir, "*"+shard.Suffix)))
		require.NoError(b, err)
		require.Len(b, shards, p.Runners)
		var total float64
		for _, path := range shards {
			total += sizeOf(b, path)
		}
		b.ReportMetric(total/float64(p.Runners), "shard-MB")
		b.ReportMetric(sizeOf(b, d.Path(results.PageFile)), "page-MB")
		b.ReportMetric(0, "ns/op")
	}
}

// sizeOf returns the size of a file in MB.
func sizeOf(b *testing.B, path string) float64 {
	info, err := os.Stat(path)
	require.NoError(b, err)
	return float64(info.Size()) / mb
}

// merge writes a run with the given plan, and measures `soak merge` of this run.
func merge(b *testing.B, p plan.Plan) results.Dir {
	d := results.Dir(b.TempDir())
	p.TestID, p.Prefix, p.BackendURL = "merge", "soak-", "http://127.0.0.1:1"
	p.ConnectionsPerVU = p.StreamsPerVU()
	require.NoError(b, writeRun(b.Context(), d, p))
	cmd := exec.CommandContext(b.Context(), "bin/soak", "merge", string(d))
	start := time.Now()
	text, err := cmd.CombinedOutput()
	require.NoError(b, err, string(text))
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	require.True(b, ok, "the resource usage must be a *syscall.Rusage")
	b.ReportMetric(time.Since(start).Seconds(), "wall-s")
	b.ReportMetric((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), "cpu-s")
	b.ReportMetric(float64(usage.Maxrss)/1024, "RSS-MB") // Maxrss is in KiB
	return d
}

func BenchmarkNginx(b *testing.B) {
	const interval = 2 * time.Second
	for b.Loop() {
		s := startBackend(b, target.LocalConfig{Connections: size.nginx, NoopInterval: interval})
		master := s.Local.NginxPID()
		if master == 0 {
			b.Skip("nginx is not installed")
		}
		time.Sleep(time.Second)
		pids := append([]int{master}, children(b, master, "")...)
		rss, pss := medianSum(b, pids, rssOf), medianSum(b, pids, pssOf)
		c := s.startBare(size.nginx, false)
		s.await(size.nginx)
		time.Sleep(max(size.settle, 3*interval))
		b.ReportMetric((medianSum(b, pids, pssOf)-pss)/float64(size.nginx)/kb, "pss-KB")
		b.ReportMetric((medianSum(b, pids, rssOf)-rss)/float64(size.nginx)/kb, "rss-KB")
		b.ReportMetric(0, "ns/op")
		_, missed := c.end()
		require.Zero(b, missed, "no noop may be missed behind nginx")
	}
}

// growthMeasured is true after the first measurement of BenchmarkGrowth, which is not repeated because it takes up to
// twice -growth.
var growthMeasured bool

// BenchmarkGrowth measures the memory of a runner with open streams over time, without forced garbage collections.
func BenchmarkGrowth(b *testing.B) {
	if *growth == 0 || growthMeasured {
		b.Skip("-growth is 0, or the growth was measured before")
	}
	growthMeasured = true
	for b.Loop() {
		s := backend(b, size.soak, time.Second)
		start, perVU := s.counts(), 50 // as `make soak` plans
		c := s.run(soakScript, size.soak, perVU, nil)
		s.await(size.soak)
		// Before the slope is measured, the heap must reach its size, and rarely used code must be loaded.
		time.Sleep(min(*growth, 10*time.Minute))
		var hours, used []float64
		for begin := time.Now(); time.Since(begin) < *growth; time.Sleep(2 * time.Second) {
			hours, used = append(hours, time.Since(begin).Hours()), append(used, sum(b, c.pids(), rssOf)/mb)
		}
		s.awaitPause()
		require.NoError(b, s.finish(c, start))
		line, ok := resources.SlopeOf(lowest(hours, used, min(2*time.Minute, *growth/12).Hours()))
		require.True(b, ok, "too few points to compute a slope")
		b.Logf("the slope is %.3g MB/h, with 95 %% confidence between %.3g and %.3g", line.PerUnit, line.Low, line.High)
		b.ReportMetric(line.PerUnit, "RSS-MB/h")
		b.ReportMetric(0, "ns/op")
	}
}

// lowest reduces a series with ascending x to the lowest point of each range of the given width. Between two garbage
// collections, memory only rises. lowest omits the last range, which may be shorter.
func lowest(x, y []float64, width float64) (tx, ty []float64) {
	from, minimum := 0, 0
	for i := range x {
		if x[i] >= x[from]+width {
			tx, ty = append(tx, x[minimum]), append(ty, y[minimum])
			from, minimum = i, i
		}
		if y[i] < y[minimum] {
			minimum = i
		}
	}
	return tx, ty
}
