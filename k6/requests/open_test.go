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
	"go.k6.io/k6/v2/metrics"
	"golang.org/x/time/rate"
)

func TestOpenStageKeepsItsRate(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	v := newVU(t)
	start := time.Now()
	require.Equal(t, counts{Made: 200}, v.await(`open({rate: 400, seconds: 0.5, concurrency: 20, operations: [{url: %q}]})`, s.URL))
	require.GreaterOrEqual(t, time.Since(start), 490*time.Millisecond, "the stage must last until its last request is due, at 497 ms")
	require.EqualValues(t, 200, served.Load())
	require.Equal(t, map[string]int{"ok": 200}, v.codes())
}

// The time between two requests may be longer than the maximum of a time.Duration.
func TestLowRateMakesOneRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	require.Equal(t, counts{Made: 1}, newVU(t).await(`open({rate: 1e-12, seconds: 0.1, concurrency: 1, operations: [{url: %q}]})`, s.URL))
}

func TestRequestsWithoutALaneAreDropped(t *testing.T) {
	t.Parallel()
	u := serveRaw(t, func(_ net.Conn, request func() bool) {
		for request() { // without a response
		}
	})
	v := newVU(t)
	c := v.await(`open({rate: 100, seconds: 0.5, concurrency: 2, timeout: 100, operations: [{url: %q}]})`, u)
	require.EqualValues(t, 50, c.Made+c.Dropped)
	require.Equal(t, c.Made, c.Failed)
	require.GreaterOrEqual(t, c.Made, int64(2))
	require.Greater(t, c.Dropped, c.Made, "with two lanes and 100 ms per request, most requests must be dropped")
	require.EqualValues(t, c.Dropped, v.sums()["dropped_iterations"].total)
}

// A service that sends 100 responses per second sends 50 within half a second, at any rate of requests. All other
// responses are late.
func TestResponsesAfterTheEndAreLate(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{
		"open":   `open({rate: 200, seconds: 0.5, concurrency: 100, operations: [{url: %q}]})`,
		"closed": `closed({seconds: 0.5, concurrency: 50, operations: [{url: %q}]})`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The stage starts between the call and the arrival of its first request.
			var called, arrived time.Time
			var mu sync.Mutex
			var lower, upper float64 // bounds of the number of responses within the stage
			s := serve(t, func(http.ResponseWriter, *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if arrived.IsZero() {
					arrived = time.Now()
				}
				time.Sleep(10 * time.Millisecond)
				if time.Since(called) <= 500*time.Millisecond {
					lower++
				}
				if time.Since(arrived) <= 500*time.Millisecond {
					upper++
				}
			})
			v := newVU(t)
			mu.Lock()
			called = time.Now()
			mu.Unlock()
			c := v.await(call, s.URL)
			sums := v.sums()
			onTime := float64(c.Made) - float64(sums["request_late ok"].n)
			require.GreaterOrEqual(t, onTime, .75*lower-10, "responses within the stage must not be late") // a client without CPU time reads some late
			require.LessOrEqual(t, onTime, 1.25*upper)
			require.Greater(t, sums["request_late ok"].n, 20)
		})
	}
	v := newVU(t)
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	v.await(`closed({concurrency: 2, requests: 10, seconds: 60, operations: [{url: %q}]})`, s.URL)
	require.Zero(t, v.sums()["request_late ok"].n, "no response can be late if the stage ends with its last request")
}

func TestBurstIsSentBeforeAnyResponseIsRead(t *testing.T) {
	t.Parallel()
	const n = 300
	var inFlight atomic.Int64
	all := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if inFlight.Add(1) == n {
			close(all)
		}
		<-all // a burst that reads a response before it has sent all requests would never end
		w.Header().Set("X-In-Flight", "300")
	})
	v := newVU(t)
	require.Equal(t, counts{Made: n}, v.await(`burst({requests: 300, operations: [{url: %q}]})`, s.URL))
	sums := v.sums()
	require.Equal(t, n, sums["request_duration ok"].n)
	require.Equal(t, n, sums["sent_after"].n)
	require.Equal(t, sum{n, n * n, n}, sums["server_in_flight"])
}

func TestBurstCountsFailedDials(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	require.Equal(t, counts{Made: 10, Failed: 10}, v.await(`burst({requests: 10, operations: [{url: %q}]})`, closedURL))
	require.Equal(t, map[string]int{"net-1212": 10}, v.codes())
}

// A server that does not read a long request must not delay the other requests.
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
	c := v.await(`burst({requests: 5, timeout: 2000, operations: [{method: 'POST', url: %q, body: 'x'.repeat(20000000), want: {body: '20000000'}}]})`, u)
	require.Equal(t, counts{Made: 5, Failed: 1}, c)
	sums := v.sums()
	require.Equal(t, 4, sums["request_duration ok"].n)
	require.Less(t, sums["request_duration ok"].max, 2000.0)
}

// A slowDialer delays one dial until the server has closed the other connections.
type slowDialer struct {
	lib.DialContexter
	n atomic.Int64
}

func (d *slowDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.n.Add(1) == 5 {
		time.Sleep(time.Second)
	}
	return d.DialContexter.DialContext(ctx, network, address) //nolint:wrapcheck // a test
}

func TestBurstReopensClosedConnections(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ReadHeaderTimeout = 500 * time.Millisecond
	s.Start()
	t.Cleanup(s.Close)
	v := newVU(t, func(s *lib.State) { s.Dialer = &slowDialer{DialContexter: s.Dialer} })
	require.Equal(t, counts{Made: 5}, v.await(`burst({requests: 5, operations: [{url: %q}]})`, s.URL))
}

// A sample of sent_after has the send time of the request, so that bursts of several runners can be compared.
func TestSentAfterHasTheSendTime(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int64 // the last request, in microseconds
	s := serve(t, func(http.ResponseWriter, *http.Request) {
		arrived.Store(time.Now().UnixMicro())
		time.Sleep(500 * time.Millisecond)
	})
	v := newVU(t)
	v.await(`burst({requests: 3, operations: [{url: %q}]})`, s.URL)
	var sampleCount int
	for _, container := range metrics.GetBufferedSamples(v.samples) {
		for _, sample := range container.GetSamples() {
			if sample.Metric.Name == "sent_after" {
				sampleCount++
				require.Less(t, sample.Time.UnixMicro(), arrived.Load()+490_000, "the time of the sample must precede the first response")
			}
		}
	}
	require.Equal(t, 3, sampleCount)
}

func TestWaitForAConnectionIsReported(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(50 * time.Millisecond) })
	for concurrency, waiting := range map[int]int{1: 9, 10: 0} {
		v := newVU(t)
		start := time.Now()
		require.Equal(t, counts{Made: 10}, v.await(`open({rate: 100, seconds: 0.1, concurrency: %d, operations: [{url: %q}]})`, concurrency, s.URL))
		elapsed := float64(time.Since(start)) / float64(time.Millisecond)
		sums := v.sums()
		require.Equal(t, waiting, sums["request_waited"].n)
		// Each request waited 40 ms longer than the previous one, and not longer than the stage lasted.
		require.GreaterOrEqual(t, sums["request_waited"].total, 35*float64(waiting*(waiting+1)/2))
		require.LessOrEqual(t, sums["request_waited"].total, float64(waiting)*elapsed)
		served := sums["request_duration ok"].total - sums["request_waited"].total
		require.GreaterOrEqual(t, served, 490.0)
		require.LessOrEqual(t, served, float64(concurrency)*elapsed) // served would be larger if it included the waits
		require.Equal(t, waiting, sums["request_connected ok"].n)
		require.Less(t, sums["request_connected ok"].total, served+1)
		require.GreaterOrEqual(t, sums["request_connected ok"].total, 49.0*float64(waiting))
	}
}

// No request waits for --rps beyond the end of its stage.
func TestRPSLimitsAStageWithinItsDuration(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, call := range []string{
		`closed({concurrency: 500, requests: 1000, seconds: 0.5, operations: [{url: %q}]})`,
		`open({rate: 2000, concurrency: 500, seconds: 0.5, timeout: 100, operations: [{url: %q}]})`,
	} {
		v := newVU(t, func(s *lib.State) { s.RPSLimit = rate.NewLimiter(10, 1) })
		start := time.Now()
		c := v.await(call, s.URL)
		require.Less(t, time.Since(start), 30*time.Second, "requests must not wait beyond their stage; 500 at 10/s would take 50 s")
		require.Positive(t, c.Made)
		require.EqualValues(t, 1000, c.Made+c.Dropped)
		require.EqualValues(t, c.Dropped, v.sums()["dropped_iterations"].total)
	}
}

func TestRPSBelowTheRateThrows(t *testing.T) {
	t.Parallel()
	sequence, err := lib.NewExecutionSegmentSequenceFromString("0,1/2,1")
	require.NoError(t, err)
	v := newVU(t, func(s *lib.State) {
		s.Options.RPS.SetValid(50)
		s.Options.ExecutionSegment, s.Options.ExecutionSegmentSequence = sequence[0], &sequence
	})
	_, err = v.VU.Runtime().RunString(`open({rate: 102, seconds: 1, concurrency: 10, operations: [{url: 'http://h'}]})`)
	require.ErrorContains(t, err, "rps is 50, but this runner's share of rate is 51 requests per second")
	require.Zero(t, v.await(`open({rate: 100, seconds: 0.05, concurrency: 10, operations: [{url: %q}]})`, serveOK(t, "")).Failed)
}
