//go:build k8s

package cluster

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const victim = "gold-5" // client that misses a price

// A feed sends a price without a number to all clients every 100 ms. About 5 seconds after the victim connects, the
// feed drops one price, for the victim or for all clients of its pod. Without a victim, it drops no price.
type feed struct {
	start      time.Time
	byPod      bool                   // the price is dropped for all clients of the pod
	dropNumber atomic.Int64           // number of the dropped price; 0: unknown
	pod        atomic.Pointer[string] // address of the pod of the victim
	losses     atomic.Uint64
}

func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const interval, offset = 100 * time.Millisecond, 50
	pod, _, _ := net.SplitHostPort(r.RemoteAddr)
	isVictim := r.URL.Query().Get("id") == victim
	number := int64(time.Since(f.start)/interval) + 1
	if isVictim {
		f.pod.Store(&pod)
		f.dropNumber.Store(number + offset)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for ; ; number++ {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Until(f.start.Add(time.Duration(number) * interval))):
		}
		if number == f.dropNumber.Load() && (isVictim || f.byPod && pod == *f.pod.Load()) {
			f.losses.Add(1)
			continue
		}
		fmt.Fprintf(w, "event: price\ndata: %d\n\n", number*7919%104729)
	}
}

// Runners compare their clients with the clients of other runners, and find exactly the dropped prices. The pods
// receive the description from soak, because their image does not contain it.
func TestFeedWithoutNumbersIsExact(t *testing.T) {
	c := connect(t)
	description := filepath.Join(t.TempDir(), "prices.js")
	require.NoError(t, os.WriteFile(description, []byte(`export default {
		name: 'prices', connect: { url: '{base}/prices?id={id}' }, message: { event: 'price', same: 'data' },
	};`), 0o600))
	for name, tt := range map[string]struct {
		victims bool
		byPod   bool
		losses  uint64
		finding string
	}{
		"feed-clean":  {},
		"feed-client": {victims: true, losses: 1, finding: `^gold-5 missed message \d+, which 11 of 12 clients received, the first at `},
		"feed-runner": {victims: true, byPod: true, losses: 4, finding: `^gold-\d+ missed message \d+, which 8 of 12 clients received, the first at `},
	} {
		t.Run(name, func(t *testing.T) {
			f := &feed{start: time.Now(), byPod: tt.byPod}
			server := httptest.NewUnstartedServer(f)
			listener, err := net.Listen("tcp", net.JoinHostPort(c.hostAddress(t), "0"))
			require.NoError(t, err)
			server.Listener = listener
			server.Start()
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			prefix := map[bool]string{true: "gold-", false: "clean-"}[tt.victims]
			s := c.run(t, name, "--connections", "12", "--runners", "3", "--service", description, "--backend-url", server.URL, "--prefix", prefix)
			want := map[bool]verdict.Outcome{true: verdict.Fail, false: verdict.Pass}[tt.victims]
			s.wait(t)
			v := s.verdict(t)
			require.Equal(t, want, v.Verdict, s.output())
			assert.Equal(t, verdict.BySubscribers, v.Evidence.Kind)
			assert.Equal(t, tt.losses, f.losses.Load())
			m := v.Messages
			assert.Equal(t, [4]uint64{tt.losses, 0, 0, 0}, [4]uint64{m.Missed, m.Duplicated, m.Reordered, m.Corrupted})
			assert.Greater(t, m.Received, uint64(12*100))
			for _, finding := range v.Findings {
				if finding.Kind == string(ledger.KindLost) {
					assert.Regexp(t, tt.finding, finding.Text)
				}
			}
			c.requireNothingLeft(t)
		})
	}
}
