package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/run/target"
)

const (
	kb = 1024.0
	mb = 1024 * kb
)

type sizes struct {
	few, many, encrypted  int // streams of a runner; few and many determine its memory per stream
	handshakes            int
	idle, busy, broadcast int           // streams of the backend
	nginx, soak           int           // streams behind nginx, and of a runner of a usual soak
	shards, ledgers, days int           // merge: shards, ledgers per shard, and days of a long run
	settle, idleSettle    time.Duration // time without measurement after all streams have opened
	window                time.Duration // time of a measurement
}

var size = sizes{
	few: 500, many: 5000, encrypted: 3000, handshakes: 10_000, idle: 5000, busy: 15000, broadcast: 5000, nginx: 5000, soak: 1200,
	shards: 1000, ledgers: 1000, days: 3, settle: 8 * time.Second, idleSettle: 10 * time.Second, window: 20 * time.Second,
}

var growth = flag.Duration("growth", 10*time.Minute, "measurement time of BenchmarkGrowth, after an equal settling time up to 10m (0: skip)")

// TestMain runs all tests at the root of the repository. -short selects small sizes, which only test the benchmarks.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		size = sizes{
			few: 200, many: 1000, encrypted: 600, handshakes: 1000, idle: 1000, busy: 2000, broadcast: 1000, nginx: 500, soak: 200,
			shards: 10, ledgers: 100, days: 1, settle: time.Second, idleSettle: time.Second, window: 3 * time.Second,
		}
		*growth = 0
	}
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// folders is the number of folders so far. It makes the names of folders, and the ids of clients, unique.
var folders int

// folder returns a new folder for the files of one process. Its name is the prefix of the ids of a client.
func folder(b testing.TB) (path, prefix string) {
	folders++
	prefix = fmt.Sprintf("bench-%d-", folders)
	path = filepath.Join(b.TempDir(), prefix)
	require.NoError(b, os.MkdirAll(path, 0o755))
	return path, prefix
}

// startProgram starts a program of bin/bench with the given options. The program writes its result to the returned
// file.
func startProgram(b testing.TB, program string, options any) (p *process.Process, output string) {
	dir, _ := folder(b)
	output = filepath.Join(dir, "out.json")
	text, err := json.Marshal(options)
	require.NoError(b, err)
	p, err = process.Start(process.Spec{
		Name: program, Path: "bin/bench", Args: []string{program, string(text)}, Env: os.Environ(), Log: output, OrphanSignal: syscall.SIGKILL,
	})
	require.NoError(b, err)
	b.Cleanup(func() { p.Stop(context.Background(), syscall.SIGKILL, time.Second) })
	return p, output
}

func awaitResult[R any](b testing.TB, p *process.Process, output string, limit time.Duration) (result R) {
	select {
	case <-p.Done():
	case <-time.After(limit):
		require.FailNowf(b, "the program did not end", "within %s", limit)
	}
	text, err := os.ReadFile(output)
	require.NoError(b, err)
	require.NoError(b, json.Unmarshal(text, &result), string(text))
	return result
}

// certificates returns a folder with an authority, and certificates for the service and its clients.
func certificates(b testing.TB) string {
	dir := b.TempDir()
	require.NoError(b, exec.Command("infra/compose/certs", dir).Run())
	return dir
}

// A service is the target of a benchmark.
type service struct {
	*target.Target
	b    testing.TB
	env  map[string]string // variables that runners need to connect
	stop func()            // stops the backend; nil for http2Service
}

// backend starts bin/backend without nginx and TLS.
func backend(b testing.TB, connections int, interval time.Duration) service {
	return startBackend(b, target.LocalConfig{Connections: connections, NoopInterval: interval, NoNginx: true})
}

func startBackend(b testing.TB, c target.LocalConfig) service {
	c.Backend, c.LogDir = "bin/backend", b.TempDir()
	t, err := target.StartLocal(b.Context(), c)
	require.NoError(b, err)
	s := service{Target: t, b: b, stop: sync.OnceFunc(func() { t.Local.Stop(context.Background()) })}
	b.Cleanup(s.stop)
	if c.Certificates != "" {
		s.env = t.RunnerEnv(c.Certificates)
	}
	return s
}

// feed sends a message of 100 bytes without a number to all streams, once a second until the benchmark ends.
func (s service) feed() {
	ctx, stop := context.WithCancel(s.b.Context())
	var running sync.WaitGroup
	running.Go(func() {
		seconds := time.NewTicker(time.Second)
		defer seconds.Stop()
		for price := 10_000; ctx.Err() == nil; price++ {
			body := fmt.Sprintf(`{"price":%d,"text":"%075d"}`, price, price)
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/event/broadcast", strings.NewReader(body))
			if err != nil {
				return
			}
			request.Header.Set("Authorization", "Bearer "+s.Token)
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
			select {
			case <-ctx.Done():
			case <-seconds.C:
			}
		}
	})
	s.b.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// address returns the address of the service as host:port.
func (s service) address() string {
	u, err := url.Parse(s.URL)
	require.NoError(s.b, err)
	return u.Host
}

// counts has values of the metrics page of a service.
type counts struct {
	open   int
	sent   uint64         // noops and messages
	rounds *dto.Histogram // durations of the rounds of noops
}

func (s service) counts() counts {
	page, ok := s.Metrics(s.b.Context())
	require.True(s.b, ok, "the service has no metrics")
	defer page.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	require.NoError(s.b, err)
	first := func(name string) *dto.Metric {
		if metrics := families[name].GetMetric(); len(metrics) > 0 {
			return metrics[0]
		}
		return nil
	}
	return counts{
		open:   int(first("backend_streams_open").GetGauge().GetValue()),
		sent:   uint64(first("backend_noops_sent_total").GetCounter().GetValue() + first("backend_messages_sent_total").GetCounter().GetValue()),
		rounds: first("backend_broadcast_duration_seconds").GetHistogram(),
	}
}

// await waits until the service has n open streams.
func (s service) await(n int) {
	require.Eventually(s.b, func() bool { return s.counts().open == n }, 2*time.Minute, 200*time.Millisecond, "the service must have %d open streams", n)
}

// awaitPause waits for the pause after a round of messages, so that the time between two pauses contains only complete
// rounds. Rounds must start one second apart.
func (s service) awaitPause() counts {
	start := s.counts()
	require.Eventually(s.b, func() bool { return s.counts().sent > start.sent }, 5*time.Second, 50*time.Millisecond, "the service sent no message within 5 s")
	time.Sleep(400 * time.Millisecond)
	return s.counts()
}

// A cost is the resource use of processes in a window.
type cost struct {
	rss, peak float64 // bytes: median in the window, and maximum since the start
	seconds   float64 // CPU time
	messages  uint64  // number of messages sent in the window
	from, to  counts
}

// per returns the CPU time for a number of messages, in seconds.
func (c cost) per(messages float64) float64 { return c.seconds / float64(c.messages) * messages }

// measureWindow measures processes during complete rounds of messages.
func (s service) measureWindow(pids []int, window time.Duration) (c cost) {
	c.from = s.awaitPause()
	cpu := sum(s.b, pids, cpuOf)
	var rss []float64
	for start := time.Now(); time.Since(start) < window.Truncate(time.Second); time.Sleep(500 * time.Millisecond) {
		rss = append(rss, sum(s.b, pids, rssOf))
	}
	c.to = s.awaitPause()
	c.rss, c.peak, c.seconds = resources.Median(rss), sum(s.b, pids, peakOf), max(sum(s.b, pids, cpuOf)-cpu, .01)
	c.messages = c.to.sent - c.from.sent
	return c
}

var errUnaccounted = errors.New("the result is incomplete")

// finish ends a client. The caller must have called awaitPause last, so that no round is in progress. finish returns an
// error unless the client received every message that was sent since start.
func (s service) finish(c client, start counts) error {
	minimum := s.counts().sent - start.sent
	for range 100 {
		if n, known := c.received(); !known || n >= minimum {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	received, missed := c.end()
	s.await(0)
	maximum := s.counts().sent - start.sent
	if received < minimum || received > maximum || missed > 0 {
		return fmt.Errorf("%d to %d messages were sent, %d received and %d missed: %w", minimum, maximum, received, missed, errUnaccounted)
	}
	return nil
}

// rssOf returns the resident set size in bytes.
func rssOf(p procfs.Proc) (float64, error) {
	s, err := p.NewStatus()
	return float64(s.VmRSS), err
}

// peakOf returns the largest resident set size in bytes.
func peakOf(p procfs.Proc) (float64, error) {
	s, err := p.NewStatus()
	return float64(s.VmHWM), err
}

// pssOf returns the proportional set size in bytes.
func pssOf(p procfs.Proc) (float64, error) {
	s, err := p.ProcSMapsRollup()
	return float64(s.Pss), err
}

// cpuOf returns the user and system time in seconds.
func cpuOf(p procfs.Proc) (float64, error) {
	s, err := p.Stat()
	return s.CPUTime(), err
}

func sum(b testing.TB, pids []int, value func(procfs.Proc) (float64, error)) (total float64) {
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		require.NoError(b, err)
		v, err := value(p)
		require.NoError(b, err)
		total += v
	}
	return total
}

func medianSum(b testing.TB, pids []int, value func(procfs.Proc) (float64, error)) float64 {
	var sums []float64
	for range 5 {
		sums = append(sums, sum(b, pids, value))
		time.Sleep(200 * time.Millisecond)
	}
	return resources.Median(sums)
}

// children returns the children of a process that have not ended; with a name, only the children that run that program.
func children(b testing.TB, pid int, name string) (out []int) {
	processes, err := procfs.AllProcs()
	require.NoError(b, err)
	for _, p := range processes {
		if s, err := p.Stat(); err == nil && s.PPID == pid && (name == "" || s.Comm == name) && s.State != "Z" {
			out = append(out, p.PID)
		}
	}
	return out
}

func quantile(values []float64, q float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[int(q*float64(len(values)-1))]
}
