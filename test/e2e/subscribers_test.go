//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

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
	path := filepath.Join(t.TempDir(), "prices.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default {
		name: 'prices', connect: { url: '{base}/sub/prices?id={id}' }, message: { event: 'price', same: 'data' },
	};`), 0o600))
	return path
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
