//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// bareService returns a service without ids, timestamps or a ledger.
func bareService(interval time.Duration) fakeservice.ServiceSpec {
	return fakeservice.ServiceSpec{
		IDs: fakeservice.IDsNone, Format: fakeservice.Format{Lines: "\n", Framing: "chunks"},
		Schedule: fakeservice.Schedule{Factor: 1, Interval: interval, Phase: fakeservice.PhaseInterval},
	}
}

// startFake starts a fake service, which stops when the test ends.
func startFake(t *testing.T, spec fakeservice.ServiceSpec, strike fakeservice.Strike) (s *fakeservice.Service, url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url = "http://" + l.Addr().String()
	if spec.TLS != nil {
		url = "https://" + l.Addr().String()
	}
	s = fakeservice.StartService(spec, strike, l)
	t.Cleanup(s.Stop)
	return s, url
}

// Noops without numbers are counted by interval. Each fault affects one client, and starts at its fourth noop.
func TestForeignBackendIsCountedByInterval(t *testing.T) {
	t.Parallel()
	spec := bareService(800 * time.Millisecond)
	spec.Text = func(id string, n int) string {
		switch {
		case id == "f-1" && n == 4:
			return ""
		case id == "f-2" && n == 4:
			return goodNoop + goodNoop
		case id == "f-3" && n == 4:
			return "data: 1\n\n"
		case id == "f-4" && n >= 4:
			return ": a comment without a noop\n\n"
		}
		return goodNoop
	}
	_, url := startFake(t, spec, fakeservice.Strike{Fault: fakeservice.Fault{Action: fakeservice.ActClose, Clients: []string{"f-5"}, From: 4, Count: 1}})
	r := begin(t, nil, "--backend-url", url+"/", "--connections", "10", "--seconds", "12", "--noop-interval", "0.8", "--prefix", "f-")
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	n := v.Messages
	require.Equal(t, [3]uint64{1 + 5, 1, 1}, [3]uint64{n.Missed, n.Duplicated, n.Corrupted}, r.out.String())
	require.Equal(t, 1, v.Connections.Dropped)
	require.False(t, v.Server.Known)
	for _, reason := range []string{"f-1 missed 1", "f-2 received noop 4 twice", "f-3 received noop 4 corrupted", "f-4 missed 5", "f-5 was "} {
		require.Contains(t, reasons(v), reason)
	}
}

// A refusingService is a service that refuses clients with odd numbers for a time after the first connect.
type refusingService struct {
	period  time.Duration // time for which clients are refused
	service *fakeservice.Service
	refused atomic.Int64 // number of refused attempts
}

func (f *refusingService) run(t *testing.T, args ...string) (*verdict.Verdict, *soakRun) {
	t.Helper()
	spec := bareService(800 * time.Millisecond)
	firstConnect := sync.OnceValue(time.Now)
	spec.Admit = func(id string, _ int) (status int) {
		if start := firstConnect(); strings.ContainsAny(id[len(id)-1:], "13579") && time.Since(start) < f.period {
			f.refused.Add(1)
			return http.StatusServiceUnavailable
		}
		return 0
	}
	service, url := startFake(t, spec, fakeservice.Strike{})
	f.service = service
	r := begin(t, nil, append([]string{"--backend-url", url, "--connections", "10", "--noop-interval", "0.8", "--prefix", "f-", "--reconnect"}, args...)...)
	return r.verdict(), r
}

// The verdict reports the refused attempts of a client before its first stream, and the time without a stream.
func TestRefusedAttemptsAreReported(t *testing.T) {
	t.Parallel()
	t.Run("for a moment", func(t *testing.T) {
		t.Parallel()
		f := &refusingService{period: 3 * time.Second}
		v, r := f.run(t, "--seconds", "20")
		require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
		require.Equal(t, map[string]int{"status 503": int(f.refused.Load())}, v.RefusedAttempts)
		require.GreaterOrEqual(t, f.refused.Load(), int64(5))
		require.Zero(t, v.Connections.Refused)
		require.Greater(t, v.ConnectMS.Max, 2900.0, "the time must count from the first dial")
		require.Less(t, v.OpenSeconds.Share, .94)
		require.Greater(t, v.OpenSeconds.Share, .5)
		require.Regexp(t, `10 streams open to the end, \d+ refused attempts, open for [789]\d[.\d]* % of the planned time`, reasons(v))
		for _, name := range []string{"report.txt", "report.md", "report.html"} {
			text, err := os.ReadFile(r.dir.Path(name))
			require.NoError(t, err)
			require.Contains(t, string(text), "status 503", name)
		}
	})
	t.Run("for longer than MAX_OUTAGE", func(t *testing.T) {
		t.Parallel()
		f := &refusingService{period: 5 * time.Second}
		v, r := f.run(t, "--seconds", "16", "--max-outage", "4")
		require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
		require.Regexp(t, `f-\d had no stream for \d[.\d]* s, from \d\d:\d\d:\d\d\S* UTC until its first stream opened; meanwhile it was refused \d times \(status 503\)`, reasons(v))
	})
	t.Run("all the time", func(t *testing.T) {
		t.Parallel()
		f := &refusingService{period: time.Hour}
		v, r := f.run(t, "--seconds", "12")
		require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
		require.Equal(t, verdict.Connections{Planned: 10, Opened: 5, Completed: 5, Refused: 5}, v.Connections)
		require.Regexp(t, `f-\d was refused at \S+ UTC \(status 503\S*\), as in all \d attempts within \d`, reasons(v))
		require.NotContains(t, reasons(v), "the server did not end")
		f.service.Mu.Lock()
		defer f.service.Mu.Unlock()
		for id, client := range f.service.Clients {
			require.Equal(t, len(client.Spans) > 0, !client.EndRequestedAt.IsZero(), "%s: a stream must be ended on request if and only if it opened", id)
		}
	})
}

// If two soaks of one service have the same PREFIX, the service refuses the streams of the second one. The second soak
// neither counts the messages of the first one nor ends the streams of the first one.
func TestConcurrentSoakWithTheSameIDs(t *testing.T) {
	t.Parallel()
	url := backend(t, "NOOP_INTERVAL=1")
	args := func(seconds string, args ...string) []string {
		return append([]string{"--backend-url", url, "--connections", "5", "--noop-interval", "1", "--prefix", "both-", "--seconds", seconds}, args...)
	}
	first := begin(t, nil, args("18")...)
	await(t, "all streams of the first soak must be open", func() bool {
		response, err := http.Get(url + "/event/ledger?prefix=both-")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return err == nil && strings.Count(string(text), `"open":true`) == 5
	})
	second := begin(t, nil, args("8", "--reconnect")...)
	v := second.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, second.out.String())
	require.Equal(t, verdict.Connections{Planned: 5, Refused: 5}, v.Connections)
	require.Zero(t, v.Messages.Missed, second.out.String())
	require.Zero(t, v.Server.Sent)
	require.Regexp(t, `both-\d was refused at .* \(status 409.*another client uses this PREFIX`, reasons(v))
	require.GreaterOrEqual(t, v.RefusedAttempts["status 409"], 5)
	v = first.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, first.out.String())
}

// pricesHub starts a hub that sends a price without a number ten times a second, and returns its URL. The hub stops
// when the test ends.
func pricesHub(t *testing.T, replay func(r *http.Request, all []string, from int) []string) (url string) {
	t.Helper()
	h := &fakeservice.Hub{ID: func(n int) string { return fmt.Sprintf("%x", n*7919%104729) }, Event: "price", History: true, Replay: replay}
	server := h.Start(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for price := 1; ctx.Err() == nil; price++ {
			h.Publish("prices", fmt.Sprint(price*7919%104729))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return server.URL
}

// describePrices writes the description of a pricesHub, and returns its path.
func describePrices(t *testing.T) string {
	t.Helper()
	return writeFile(t, "prices.js", `export default {
		name: 'prices', connect: { url: '{base}/sub/prices?id={id}' }, message: { event: 'price', same: 'data' },
	};`)
}

// The suite resume reads a feed whose messages have no numbers. The run does not publish them. The losses of the
// resumes are counted exactly, and attributed to the disconnects.
func TestResumeFaultsOfAFeedAreCounted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	lost := map[string]map[int]bool{}                                            // indexes of lost messages by client
	url := pricesHub(t, func(r *http.Request, all []string, from int) []string { // omits the last message
		mu.Lock()
		defer mu.Unlock()
		last, client := max(len(all)-1, from), r.URL.Query().Get("id")
		if lost[client] == nil {
			lost[client] = map[int]bool{}
		}
		// If a client is disconnected again before it receives the next message, it resumes before the lost message.
		maps.DeleteFunc(lost[client], func(index int, _ bool) bool { return index >= from })
		if last < len(all) {
			lost[client][last] = true
		}
		return all[from:last]
	})
	r := begin(t, nil, "resume", "--service", describePrices(t), "--backend-url", url, "--runners", "2", "--late-ms", "20000",
		"--connections", "24", "--seconds", "17", "--cuts-per-second", "6", "--pause", "0.5", "--cuts", "fin:1,rst:1")
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, verdict.BySubscribers, v.Evidence.Kind)
	var faults uint64
	mu.Lock()
	for _, indexes := range lost {
		faults += uint64(len(indexes))
	}
	mu.Unlock()
	require.GreaterOrEqual(t, faults, uint64(10))
	require.Equal(t, [2]uint64{faults, 0}, [2]uint64{v.Messages.Missed, v.Messages.Duplicated}, r.out.String())
	require.Zero(t, v.Messages.Reordered+v.Messages.Corrupted)
	require.Equal(t, faults, sum(v).Lost)
}
