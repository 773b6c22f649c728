package requests

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
)

func TestOpenLoopKeepsItsRate(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	v := newVU(t)
	began := time.Now()
	require.Equal(t, counts{Made: 200}, v.await(`open({rate: 400, seconds: 0.5, concurrency: 20, operations: [{url: %q}]})`, s.URL))
	require.GreaterOrEqual(t, time.Since(began), 490*time.Millisecond, "the last one is due at 497 ms")
	require.EqualValues(t, 200, served.Load())
	require.Equal(t, map[string]int{"ok": 200}, v.codes())
}

// A service that stalls cannot hide: the requests that had to wait for a connection are as late as they would be to a user.
func TestStalledServiceIsMeasured(t *testing.T) {
	t.Parallel()
	const stall = 400 * time.Millisecond
	var first atomic.Bool
	s := serve(t, func(http.ResponseWriter, *http.Request) {
		if first.CompareAndSwap(false, true) {
			time.Sleep(stall)
		}
	})
	v := newVU(t)
	require.Equal(t, counts{Made: 50}, v.await(`open({rate: 100, seconds: 0.5, concurrency: 1, operations: [{url: %q}]})`, s.URL))
	sums := v.sums()["request_duration ok"]
	require.GreaterOrEqual(t, sums.most, 390.0)
	// 40 were due while it stalled, each 10 ms after the one before: together they were late by 8 s.
	require.GreaterOrEqual(t, sums.total, 7500.0)
}

// What could not be begun within its time was never made, and is counted.
func TestUnstartedRequestsAreNotCounted(t *testing.T) {
	t.Parallel()
	u := serveRaw(t, func(_ net.Conn, request func() bool) {
		for request() { // and no answer
		}
	})
	v := newVU(t)
	c := v.await(`open({rate: 100, seconds: 0.5, concurrency: 2, timeout: 100, operations: [{url: %q}]})`, u)
	require.EqualValues(t, 50, c.Made+c.Dropped)
	require.Equal(t, c.Made, c.Failed)
	require.GreaterOrEqual(t, c.Made, int64(2))
	require.Greater(t, c.Dropped, c.Made, "two at a time, each for up to 100 ms")
	require.EqualValues(t, c.Dropped, v.sums()["dropped_iterations"].total)
}

// A service with exactly 100 answers/s answers 50 in half a second, however many are asked. The others are late.
func TestAnswersAfterTheEndAreLate(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{
		"open":   `open({rate: 200, seconds: 0.5, concurrency: 100, operations: [{url: %q}]})`,
		"closed": `closed({seconds: 0.5, concurrency: 50, operations: [{url: %q}]})`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The stage of the client starts between the call and the arrival of its first request.
			var called, arrived time.Time
			var mu sync.Mutex
			var least, most float64 // answers in time, by the two
			s := serve(t, func(http.ResponseWriter, *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if arrived.IsZero() {
					arrived = time.Now()
				}
				time.Sleep(10 * time.Millisecond)
				if time.Since(called) <= 500*time.Millisecond {
					least++
				}
				if time.Since(arrived) <= 500*time.Millisecond {
					most++
				}
			})
			v := newVU(t)
			mu.Lock()
			called = time.Now()
			mu.Unlock()
			c := v.await(call, s.URL)
			sums := v.sums()
			inTime := float64(c.Made) - float64(sums["request_late ok"].n)
			require.GreaterOrEqual(t, inTime, .75*least-10, "of at most 50; a starved client reads the last ones late")
			require.LessOrEqual(t, inTime, 1.25*most)
			require.Greater(t, sums["request_late ok"].n, 20)
		})
	}
	v := newVU(t)
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	v.await(`closed({concurrency: 2, requests: 10, seconds: 60, operations: [{url: %q}]})`, s.URL)
	require.Zero(t, v.sums()["request_late ok"].n, "it lasts as long as its requests")
}

func TestBurstIsSentBeforeAnyResponseIsRead(t *testing.T) {
	t.Parallel()
	const n = 300
	var inHand atomic.Int64
	all := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if inHand.Add(1) == n {
			close(all)
		}
		<-all // a burst that waited for an answer first would never end
		w.Header().Set("X-In-Flight", "300")
	})
	v := newVU(t)
	require.Equal(t, counts{Made: n}, v.await(`burst({requests: 300, operations: [{url: %q}]})`, s.URL))
	sums := v.sums()
	require.Equal(t, n, sums["request_duration ok"].n)
	require.Equal(t, n, sums["sent_after"].n)
	require.Equal(t, sum{n, n * n, n}, sums["server_in_flight"])
}

func TestBurstCountsConnectionsThatDoNotOpen(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	require.Equal(t, counts{Made: 10, Failed: 10}, v.await(`burst({requests: 10, operations: [{url: %q}]})`, closedURL))
	require.Equal(t, map[string]int{"net-1212": 10}, v.codes())
}

// A long request takes as long as the server takes to read it. One of which nothing is read holds up no answer to the others.
func TestLongRequestsOfABurstDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	var first atomic.Bool
	u := serveRaw(t, func(conn net.Conn, _ func() bool) {
		r := bufio.NewReader(conn)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if first.CompareAndSwap(false, true) {
			<-t.Context().Done()
			return
		}
		n, _ := io.Copy(io.Discard, req.Body)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n%d", n)
	})
	v := newVU(t)
	c := v.await(`burst({requests: 5, timeout: 5000, operations: [{method: 'POST', url: %q, body: 'x'.repeat(20000000), want: {body: '20000000'}}]})`, u)
	require.Equal(t, counts{Made: 5, Failed: 1}, c)
	sums := v.sums()
	require.Equal(t, 4, sums["request_duration ok"].n)
	require.Less(t, sums["request_duration ok"].most, 5000.0)
}

// slowly dials one connection of many so late that the server has given the others up.
type slowly struct {
	lib.DialContexter
	n atomic.Int64
}

func (d *slowly) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.n.Add(1) == 5 {
		time.Sleep(2 * time.Second)
	}
	return d.DialContexter.DialContext(ctx, network, address) //nolint:wrapcheck // it is the test's
}

func TestBurstReopensClosedConnections(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ReadHeaderTimeout = time.Second
	s.Start()
	t.Cleanup(s.Close)
	v := newVU(t, func(s *lib.State) { s.Dialer = &slowly{DialContexter: s.Dialer} })
	require.Equal(t, counts{Made: 5}, v.await(`burst({requests: 5, operations: [{url: %q}]})`, s.URL))
}

// Requests have the time of sending, so that bursts of several runners can be compared.
func TestSentAfterHasTheTimeOfSending(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int64 // the last request, in microseconds
	s := serve(t, func(http.ResponseWriter, *http.Request) {
		arrived.Store(time.Now().UnixMicro())
		time.Sleep(500 * time.Millisecond)
	})
	v := newVU(t)
	v.await(`burst({requests: 3, operations: [{url: %q}]})`, s.URL)
	close(v.samples)
	for container := range v.samples {
		for _, sample := range container.GetSamples() {
			if sample.Metric.Name == "sent_after" {
				require.Less(t, sample.Time.UnixMicro(), arrived.Load()+490_000, "before the first answer")
			}
		}
	}
}

// The wait for a connection is separate from the time of the service.
func TestWaitForAConnectionIsReported(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(50 * time.Millisecond) })
	for concurrency, waiting := range map[int]int{1: 9, 10: 0} {
		v := newVU(t)
		began := time.Now()
		require.Equal(t, counts{Made: 10}, v.await(`open({rate: 100, seconds: 0.1, concurrency: %d, operations: [{url: %q}]})`, concurrency, s.URL))
		elapsed := float64(time.Since(began)) / float64(time.Millisecond)
		sums := v.sums()
		require.Equal(t, waiting, sums["request_waited"].n)
		// Each request that waited did so 40 ms longer than the one before, and no longer than the run lasted.
		require.GreaterOrEqual(t, sums["request_waited"].total, 35*float64(waiting*(waiting+1)/2))
		require.LessOrEqual(t, sums["request_waited"].total, float64(waiting)*elapsed)
		served := sums["request_duration ok"].total - sums["request_waited"].total
		require.GreaterOrEqual(t, served, 490.0)
		require.LessOrEqual(t, served, float64(concurrency)*elapsed) // with the waits it would be more
		require.Equal(t, waiting, sums["request_connected ok"].n)
		require.Less(t, sums["request_connected ok"].total, served+1)
		require.GreaterOrEqual(t, sums["request_connected ok"].total, 49.0*float64(waiting))
	}
}
