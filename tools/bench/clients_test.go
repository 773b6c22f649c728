package main

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/sockets"
)

func TestScriptsExist(t *testing.T) {
	for _, script := range []string{bareScript, soakScript, tlsScript, handshakeScript, requestsScript, serviceScript} {
		require.FileExists(t, script)
	}
}

func TestWrkRateRejectsFailedRequests(t *testing.T) {
	rate, err := parseWrkRate("  60 requests in 3.00s, 1MB read\nRequests/sec:  62836.25\nTransfer/sec:     12.93MB\n")
	require.NoError(t, err)
	require.InDelta(t, 62836.25, rate, 0)
	for _, text := range []string{
		"  Non-2xx or 3xx responses: 60\nRequests/sec:  62836.25\n", "  Socket errors: connect 0, read 2, write 0, timeout 0\nRequests/sec:  62836.25\n", "unable to connect\n",
	} {
		_, err = parseWrkRate(text)
		require.Error(t, err, text)
	}
}

func TestProcesses(t *testing.T) {
	pids := []int{os.Getpid()}
	for _, value := range []func(procfs.Proc) (float64, error){rssOf, pssOf} {
		require.InDelta(t, 100<<20, sum(t, pids, value), 99<<20, "the memory of this process must be between 1 and 199 MB")
	}
	cpu, start := sum(t, pids, cpuOf), time.Now()
	for sum(t, pids, cpuOf) == cpu && time.Since(start) < 10*time.Second { // a tick is 10 ms of CPU
	}
	require.Greater(t, sum(t, pids, cpuOf), cpu)
	require.Contains(t, children(t, os.Getppid(), ""), os.Getpid())
}

func TestLowest(t *testing.T) {
	x, y := lowest([]float64{0, 1, 2, 3, 4, 5, 6}, []float64{5, 4, 6, 9, 7, 8, 1}, 3)
	require.Equal(t, []float64{1, 4}, x)
	require.Equal(t, []float64{4, 7}, y)
}

// The table contains the figures of the given output. Other benchmarks keep their earlier figures. A figure over its
// limit is an error.
func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench")
	output := "goos: linux\nBenchmarkMerge-2  1  9000000 ns/op  431 RSS-MB  14.4 wall-s\nBenchmarkMerge-2  1  440 RSS-MB  14.8 wall-s\n" +
		"BenchmarkMerge-2  1  435 RSS-MB  14.6 wall-s\nPASS\n"
	require.NoError(t, writeTable(strings.NewReader(output), path))
	text, err := os.ReadFile(path + ".md")
	require.NoError(t, err)
	require.Regexp(t, `\| merge, wall time +\| 14.6 \(14.4…14.8\) s \| 15.0 +\| PASS \|`, string(text))
	err = writeTable(strings.NewReader("BenchmarkRunner 1 1.7 soak/epoll 2.9 soak-KB\nFAIL\n"), path)
	require.ErrorContains(t, err, "a benchmark failed")
	require.ErrorContains(t, err, "runner, soak script, CPU against epoll client is 1.70 ×, over the limit of 1.60")
	text, err = os.ReadFile(path + ".md")
	require.NoError(t, err)
	require.Contains(t, string(text), "14.6 (14.4…14.8) s")
	require.Error(t, writeTable(strings.NewReader("PASS\n"), path), "output without figures must be rejected")
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", .00123456: "0.00123", 1.234: "1.23", 12.34: "12.3", 999.6: "1000", -123.4: "-123", 4567: "4567"} {
		require.Equal(t, want, short(v))
	}
}

func TestReaderCountsLines(t *testing.T) {
	var c reader
	for _, line := range []string{"HTTP/1.1 200 OK\r\n", "\r\n", "2a\r\n", "id: 1\n", ": sent=12\n", "data: 0\n", "\n", "\r\n", "id: 4\n", "data: 0\n", "data: x\n"} {
		c.line([]byte(line))
	}
	require.EqualValues(t, 2, c.received)
	require.EqualValues(t, 2, c.missed)
}

// The client also counts the noops that the service sends after the client has half-closed the stream.
func TestHoldCountsEveryNoop(t *testing.T) {
	const streams = 20
	for _, epoll := range []bool{false, true} {
		ctx, stop := context.WithCancel(t.Context())
		var open sync.WaitGroup
		open.Add(streams)
		address := sockets.Serve(t, func(conn net.Conn) {
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil || !strings.HasPrefix(req.FormValue("id"), "d-") {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nid: 1\ndata: 0\n\nid: 2\ndata: 0\n\n")
			open.Done()
			_, _ = io.Copy(io.Discard, conn)
			_, _ = io.WriteString(conn, "id: 3\ndata: 0\n\n")
		})
		go func() { open.Wait(); stop() }()
		result, err := hold(ctx, holdOptions{Address: address, Streams: streams, Prefix: "d-", Epoll: epoll})
		require.NoError(t, err)
		require.EqualValues(t, 3*streams, result.Received)
		require.Zero(t, result.Missed)
		require.Empty(t, result.Errors)
	}
	_, err := hold(t.Context(), holdOptions{Address: "127.0.0.1:1", Streams: 1, Epoll: true})
	require.ErrorContains(t, err, "connection 0: ")
}

// The runs that BenchmarkMerge generates pass.
func TestGeneratedRunPasses(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.TestID, p.Prefix, p.BackendURL, p.Runners, p.Connections = "merge", "soak-", "http://127.0.0.1:1", 2, 20
	p.ConnectionsPerVU = p.StreamsPerVU()
	d := results.Dir(t.TempDir())
	require.NoError(t, writeRun(t.Context(), d, p))
	v, _, err := d.Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
}

// An endlessService ends a stream only after a DELETE, or when the client disconnects.
type endlessService struct {
	streams       sync.Map // channels by client id, closed by a DELETE
	open, deletes atomic.Int64
}

func (e *endlessService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if r.Method == http.MethodDelete {
		end, ok := e.streams.LoadAndDelete(id)
		if !ok || r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		e.deletes.Add(1)
		close(end.(chan struct{}))
		return
	}
	end := make(chan struct{})
	e.streams.Store(id, end)
	e.open.Add(1)
	defer e.open.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	select {
	case <-end:
	case <-r.Context().Done():
	}
}

// The client counts only streams that were open and have ended, and uses no id twice.
func TestChurnClient(t *testing.T) {
	t.Parallel()
	for _, withDelete := range []bool{false, true} {
		service := &endlessService{}
		server := httptest.NewServer(service)
		r, err := churn(t.Context(), churnOptions{Address: strings.TrimPrefix(server.URL, "http://"), Prefix: "d-", Token: "t", Delete: withDelete, Duration: time.Minute, MaxStreams: 500})
		require.NoError(t, err)
		require.Empty(t, r.Errors)
		require.Len(t, r.Connect, 500)
		require.Eventually(t, func() bool { return service.open.Load() == 0 }, time.Minute, time.Millisecond, "all streams must end")
		require.EqualValues(t, service.deletes.Load(), len(r.End))
		if withDelete {
			require.Len(t, r.End, 500)
		}
		server.Close()
	}
}

// A refused request is counted as an error, without a time.
func TestChurnClientReportsRefusals(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer server.Close()
	r, err := churn(t.Context(), churnOptions{Address: strings.TrimPrefix(server.URL, "http://"), Duration: time.Minute, MaxStreams: 10_000})
	require.NoError(t, err)
	require.Empty(t, r.Connect)
	require.Equal(t, map[string]int{"GET answered 503 Service Unavailable": 10 * churnWorkers}, r.Errors)

	server = httptest.NewServer(&endlessService{})
	defer server.Close()
	r, err = churn(t.Context(), churnOptions{Address: strings.TrimPrefix(server.URL, "http://"), Token: "wrong", Delete: true, Duration: time.Minute, MaxStreams: 10_000})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"DELETE answered 404 Not Found": 10 * churnWorkers}, r.Errors)
}

// A client is a process that keeps streams open.
type client interface {
	pids() []int
	received() (n uint64, known bool) // known is false if the client reports the number only at its end
	end() (received, missed uint64)   // stops the client
}

// A runner is one k6 process.
type runner struct {
	*runners.Group
	b      testing.TB
	count  atomic.Uint64 // received messages in the last report
	shards string
	done   chan struct{} // closed when the process has ended
	stop   func()
}

// run starts k6 in the same way as a soak. change, unless nil, adapts the plan.
func (s service) run(script string, streams, perVU int, change func(*plan.Plan)) client {
	dir, prefix := folder(s.b)
	shards := filepath.Join(dir, "shards")
	require.NoError(s.b, os.MkdirAll(shards, 0o755))
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Runners = "bench", streams, perVU, 1
	p.Seconds, p.NoopInterval, p.BackendURL, p.Prefix = 12*3600, 1, s.URL, prefix
	if change != nil {
		change(&p)
	}
	env := map[string]string{"PUBLISH_TOKEN": s.Token, "K6_SUMMARY_MODE": "disabled", "K6_NO_THRESHOLDS": "true"}
	maps.Copy(env, s.env)
	r := &runner{b: s.b, shards: shards, done: make(chan struct{})}
	group, err := runners.Start(runners.Config{
		K6: "bin/k6", Script: script, Document: plan.Document{Plan: p}, Token: s.Token, Dir: dir, Env: env,
		OnReport: func(_ int, p *shard.Progress) {
			if p != nil {
				r.count.Store(p.Received)
			}
		},
	})
	require.NoError(s.b, err)
	ctx, stop := context.WithCancel(context.Background())
	r.Group, r.stop = group, stop
	go func() {
		_ = group.Wait(ctx, context.Background())
		close(r.done)
	}()
	s.b.Cleanup(func() {
		r.Kill()
		<-r.done
	})
	return r
}

// pids returns the id of the runner's process. A benchmark runs one runner at a time.
func (r *runner) pids() []int { return children(r.b, os.Getpid(), "k6") }

func (r *runner) received() (uint64, bool) { return r.count.Load(), true }

func (r *runner) end() (received, missed uint64) {
	r.stop()
	select {
	case <-r.done:
	case <-time.After(time.Minute):
		require.FailNow(r.b, "the runner did not end within a minute")
	}
	for c := range shardIn(r.b, r.shards).Records() {
		received += c.Received
		missed += c.Lost + c.Duplicated + c.Reordered + c.Corrupted // not by interval: a saturated runner may read late
	}
	return received, missed
}

// script runs a script of a suite to its end, and returns its shard.
func (s service) script(script string, p plan.Plan, env map[string]string, limit time.Duration) *shard.Shard {
	dir, _ := folder(s.b)
	maps.Copy(env, s.env)
	p.TestID, p.Runners, p.BackendURL = "bench", 1, s.URL
	group, err := runners.Start(runners.Config{K6: "bin/k6", Script: script, Document: plan.Document{Plan: p, Settings: env}, Dir: dir, Env: env})
	require.NoError(s.b, err)
	ctx, stop := context.WithTimeout(s.b.Context(), limit)
	defer stop()
	require.NoError(s.b, group.Wait(ctx, ctx))
	return shardIn(s.b, filepath.Join(dir, "shards"))
}

func shardIn(b testing.TB, dir string) *shard.Shard {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+shard.Suffix))
	require.NoError(b, err)
	require.Len(b, paths, 1, "shards in %s", dir)
	s, err := shard.ReadFile(paths[0])
	require.NoError(b, err)
	return s
}

// A bareClient is the program "hold" of bench.
type bareClient struct {
	*process.Process
	b      testing.TB
	output string
}

func (s service) startBare(streams int, epoll bool) client {
	_, prefix := folder(s.b)
	p, output := startProgram(s.b, "hold", holdOptions{Address: s.address(), Streams: streams, Prefix: prefix, Epoll: epoll})
	return &bareClient{p, s.b, output}
}

func (c *bareClient) pids() []int              { return []int{c.PID()} }
func (c *bareClient) received() (uint64, bool) { return 0, false }

func (c *bareClient) end() (received, missed uint64) {
	c.Stop(context.Background(), syscall.SIGTERM, 20*time.Second)
	r := awaitResult[holdResult](c.b, c.Process, c.output, time.Second)
	require.Empty(c.b, r.Errors, "connections failed")
	return r.Received, r.Missed
}
