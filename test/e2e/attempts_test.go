//go:build e2e

package e2e

import (
	"io"
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
