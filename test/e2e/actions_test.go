//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/reverse"
	"github.com/sse-soak/sse-soak/test/services"
)

// A reload of nginx interrupts no stream. A restart of nginx or of the backend interrupts all streams. The verdict
// reports each effect, even if the run is judged again.
func TestActionsAreReported(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	const streams = 40
	r := begin(t, nil, "--connections", "40", "--seconds", "28", "--noop-interval", "0.2", "--reconnect",
		"--at", "6s reload: PATH=$PATH:/usr/sbin nginx -c $SOAK_NGINX_CONF -s reload", "--at", "9s proxy: kill $SOAK_NGINX_PID", "--at", "16s backend: kill -KILL $SOAK_BACKEND_PID; echo killed")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Len(t, v.Actions, 3)
	reload, proxy, backend := v.Actions[0].Effect, v.Actions[1].Effect, v.Actions[2].Effect
	require.Equal(t, [2]int{0, 0}, [2]int{reload.Lost, reload.NotReconnected}, "old workers must keep their streams")
	for _, e := range []*verdict.Effect{proxy, backend} {
		require.Equal(t, [2]int{streams, 0}, [2]int{e.Lost, e.NotReconnected}, r.out.String())
		require.Less(t, *e.Reconnected50, *e.Reconnected100)
		require.LessOrEqual(t, e.Peak, streams)
		require.Positive(t, e.Slowest.Seconds)
		require.InDelta(t, *e.Reconnected100, e.Slowest.Seconds+*e.FirstLost, 1.5)
		require.Zero(t, e.Missed+e.Duplicated)
	}
	require.Greater(t, *proxy.Resumed, uint64(streams), "the backend must replay the noops of the outage, one every 0.2 s")
	require.Less(t, *backend.Resumed, uint64(streams/2), "a stopped backend must generate no noops; a few may be due after its restart")
	require.Equal(t, "killed", v.Actions[2].Output)
	require.Equal(t, v.Connections.Reconnected, v.Reconnect.Count)
	require.Greater(t, v.Reconnect.Max-v.Reconnect.P50, 200.0, "reconnects must be spread over time")

	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), `"lines":[{"name":"reload",`)
	require.NoError(t, os.Remove(r.dir.Path(results.VerdictFile)))
	text, err := exec.Command(filepath.Join(root, "bin", "soak"), "report", string(r.dir)).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Equal(t, v.Actions, readVerdict(t, r.dir).Actions)
}

// nchan stores the messages that are published while its clients are disconnected, and each client receives them once
// after its reconnect.
func TestActionOnADescribedService(t *testing.T) {
	t.Parallel()
	nchan := startService(t, "nchan", services.Options{})
	target, err := url.Parse(nchan.URL)
	require.NoError(t, err)
	outage, disconnect := context.WithCancel(t.Context())
	forwarder := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && outage.Err() == nil { // a stream that opened before the outage
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(outage, cancel)()
			r = r.WithContext(ctx)
		}
		forwarder.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	file := filepath.Join(t.TempDir(), "cut")
	r := begin(t, nil, "--service", nchan.Service, "--backend-url", proxy.URL, "--connections", "12", "--topics", "3", "--publish-rate", "30",
		"--seconds", "17", "--reconnect", "--prefix", "act-", "--at", "5s cut: touch "+file)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for range 3000 {
			if _, err := os.Stat(file); err == nil {
				disconnect()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	v := r.verdict()
	watcher.Wait()
	disconnect()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	e := v.Actions[0].Effect
	require.Equal(t, [2]int{12, 0}, [2]int{e.Lost, e.NotReconnected}, r.out.String())
	require.Zero(t, e.Missed+e.Duplicated)
	require.Greater(t, *e.Resumed, uint64(12), "each client must receive the messages of the outage: 10 per second, for at least 1 s")
}

// If soak is killed, the kernel sends a signal only to the shell of an action. The children of the shell must end, too.
func TestKilledSoakEndsItsActions(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "4", "--seconds", "60", "--noop-interval", "1",
		"--at", "0s both: sleep 300 & sleep 300; true", "--at", "0s left: sleep 300 &", "--at-env", "SOAK_E2E_MARK")
	sleepCount := func() (n int) {
		for _, pid := range processes(m) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.HasPrefix(string(line), "sleep\x00300") {
				n++
			}
		}
		return n
	}
	await(t, "all actions must run", func() bool { return sleepCount() == 3 })
	require.NoError(t, r.cmd.Process.Kill())
	_ = r.cmd.Wait()
	await(t, "all processes of the actions must end", func() bool { return sleepCount() == 0 })
	requireNoProcess(t, m)
}
