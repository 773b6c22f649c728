package main

import (
	"bufio"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// bench is started at the root of the repository.
func TestScriptsExist(t *testing.T) {
	for _, script := range []string{bareScript, soakScript, tlsScript, handshakeScript, requestsScript, described} {
		require.FileExists(t, "../../"+script)
	}
}

// A rate that failures helped to is none: wrk counts an answer of any status.
func TestWhatWrkSays(t *testing.T) {
	rate, err := wrkSaid("  60 requests in 3.00s, 1MB read\nRequests/sec:  62836.25\nTransfer/sec:     12.93MB\n")
	require.NoError(t, err)
	require.InDelta(t, 62836.25, rate, 0)
	for _, text := range []string{
		"  Non-2xx or 3xx responses: 60\nRequests/sec:  62836.25\n", "  Socket errors: connect 0, read 2, write 0, timeout 0\nRequests/sec:  62836.25\n", "unable to connect\n",
	} {
		_, err = wrkSaid(text)
		require.Error(t, err, text)
	}
}

func TestProcesses(t *testing.T) {
	me := []int{os.Getpid()}
	for _, of := range []func(procfs.Proc) (float64, error){rssOf, pssOf} {
		require.InDelta(t, 100<<20, sum(me, of), 99<<20, "some MB")
	}
	before, began := sum(me, cpuOf), time.Now()
	for sum(me, cpuOf) == before && time.Since(began) < 10*time.Second { // a tick is 10 ms of CPU
	}
	require.Greater(t, sum(me, cpuOf), before)
	require.Error(t, attempt(func() { sum([]int{1 << 30}, rssOf) }))
	require.Contains(t, children(os.Getppid(), ""), os.Getpid())
}

func TestLowest(t *testing.T) {
	x, y := lowest([]float64{0, 1, 2, 3, 4, 5, 6}, []float64{5, 4, 6, 9, 7, 8, 1}, 3)
	require.Equal(t, []float64{1, 4}, x)
	require.Equal(t, []float64{4, 7}, y)
}

func TestRawLine(t *testing.T) {
	var c rawConn
	noops := 0
	for _, line := range []string{"HTTP/1.1 200 OK\r\n", "\r\n", "2a\r\n", "id: 1\n", ": sent=12\n", "data: 0\n", "\n", "\r\n", "id: 4\n", "data: 0\n", "data: x\n"} {
		if c.line([]byte(line)) {
			noops++
		}
	}
	require.Equal(t, 2, noops)
	require.EqualValues(t, 2, c.received)
	require.EqualValues(t, 2, c.missed)
}

// The yardsticks are worth nothing if they miss noops: what comes before and after they are told to end, two in one piece among
// them.
func TestEpollClientsCountEveryNoop(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("epoll is Linux's")
	}
	for _, o := range []rawOptions{{Epoll: true}, {Ledgers: true}} {
		countsEveryNoop(t, o)
	}
	_, err := holdEpoll(t.Context(), rawOptions{Address: "127.0.0.1:1", Connections: 1})
	require.ErrorContains(t, err, "connection 0: ")
}

func countsEveryNoop(t *testing.T, o rawOptions) {
	const streams = 20
	ctx, stop := context.WithCancel(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	var open sync.WaitGroup
	open.Add(streams)
	go func() {
		for range streams {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil || !strings.HasPrefix(req.FormValue("id"), "d-") {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nid: 1\ndata: 0\n\nid: 2\ndata: 0\n\n")
				open.Done()
				_, _ = io.Copy(io.Discard, conn)
				_, _ = io.WriteString(conn, "id: 3\ndata: 0\n\n")
			}()
		}
	}()
	go func() { open.Wait(); stop() }()
	o.Address, o.Connections, o.Prefix = listener.Addr().String(), streams, "d-"
	result, err := holdEpoll(ctx, o)
	require.NoError(t, err)
	require.EqualValues(t, 3*streams, result.Received)
	require.Zero(t, result.Missed)
}

// bench measures merges of runs that pass.
func TestTheRunToMergePasses(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.TestID, p.Prefix, p.BackendURL, p.Runners, p.Connections = "merge", "soak-", "http://127.0.0.1:1", 2, 20
	p.ConnectionsPerVU = p.Density()
	d := results.Dir(t.TempDir())
	require.NoError(t, writeRun(t.Context(), d, p))
	v, _, err := d.Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
}

func TestSpreads(t *testing.T) {
	ms := int64(time.Millisecond)
	round := func(at ...int64) (out []arrival) {
		for _, a := range at {
			out = append(out, arrival{kernel: a * ms, reader: (a + 1) * ms})
		}
		return out
	}
	conns := []rawConn{{arrivals: round(10_000, 11_000, 12_000)}, {arrivals: round(11_030, 12_010)}}
	kernel, reader := spreads(conns)
	require.InDeltaSlice(t, []float64{0.030, 0.010}, kernel, 1e-9, "the first round did not reach both")
	require.InDeltaSlice(t, []float64{0.030, 0.010}, reader, 1e-9)
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		metric Metric
		quick  bool
		want   Verdict
	}{
		{metric("", "KB", 3), false, None},
		{metric("", "KB", 3).limited(3), false, Pass},
		{metric("", "KB", 3.1).limited(3), false, Over},
		{metric("", "KB", 3.1).limited(3), true, None},
		{metric("", "KB", math.NaN()).limited(3), false, Over},
		{Metric{Value: 1, Low: -1, High: 3, Interval: true, Limit: 2}, false, Undecided},
		{Metric{Value: 1, Low: -1, High: 2, Interval: true, Limit: 2}, false, Pass},
		{Metric{Value: 4, Low: 3, High: 5, Interval: true, Limit: 2}, false, Over},
	} {
		c.metric.judge(c.quick)
		require.Equal(t, c.want, c.metric.Verdict, "%+v", c.metric)
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", .00123456: "0.00123", 1.234: "1.23", 12.34: "12.3", 999.6: "1000", -123.4: "-123", 4567: "4567"} {
		require.Equal(t, want, short(v))
	}
}
