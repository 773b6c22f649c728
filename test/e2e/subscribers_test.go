//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

const feedTopic = "feed-topic-1"

// priceMessage returns a message without a number.
func priceMessage(price int) string {
	return fmt.Sprintf(`{"topic":%q,"run":"price %d","seq":0,"t":0,"sum":"x"}`, feedTopic, price)
}

// publishPrice publishes a price with the service's own protocol.
func publishPrice(ctx context.Context, r *services.Instance, price int) error {
	path := map[string]string{"nchan": "/pub/" + feedTopic, "pocketbase": "/api/collections/soak/records"}[r.Name]
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+path, strings.NewReader(priceMessage(price)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if r.PublishToken != "" {
		request.Header.Set("Authorization", r.PublishToken)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	output, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("publish to %s: %s: %s", r.Name, response.Status, output)
	}
	return err
}

// startFeed publishes prices until the test ends.
func startFeed(t *testing.T, r *services.Instance) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for price := 1000; ctx.Err() == nil; price++ {
			if err := publishPrice(ctx, r, price*7919%10_000); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		done <- nil
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

var (
	messageField = regexp.MustCompile(`message: \{.*\},\n`)
	publishField = regexp.MustCompile(`(?s)  publish: \{.*?\n  \},\n`)
)

// describeFeed writes a description of the service, without the numbers of messages and without publish, and returns
// the path. The verdict therefore compares the messages of the clients with each other.
func describeFeed(t *testing.T, r *services.Instance, message string) string {
	t.Helper()
	file := r.Service
	if !strings.Contains(file, "/") {
		file = filepath.Join(root, "load-tests", "services", file+".js")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	out := publishField.ReplaceAllString(messageField.ReplaceAllString(string(text), "message: "+message+",\n"), "")
	require.NotContains(t, out, "seq:")
	path := filepath.Join(t.TempDir(), "feed.js")
	require.NoError(t, os.WriteFile(path, []byte(out), 0o600))
	return path
}

// The messages of the feed have no numbers, and the run does not publish them. The only finding is the message that one
// client lost.
func TestComparedClientsFindLostFrame(t *testing.T) {
	eachOf(t, []string{"nchan", "pocketbase"}, func(t *testing.T, name string) {
		message := map[string]string{"nchan": "{ same: 'data' }", "pocketbase": "{ same: 'json:$.record.run' }"}[name]
		r := startService(t, name, services.Options{})
		proxy := startProxy(t, r, faulty.Options{Marker: "price ", Faults: []faulty.Fault{{Kind: faulty.Lose, Stream: 4, Message: 25}}})
		startFeed(t, r)
		s := begin(t, r.Env, "--service", describeFeed(t, r, message), "--backend-url", proxy.URL, "--prefix", "gold-", "--topic", feedTopic,
			"--connections", "8", "--seconds", "16", "--runners", "2")
		v := s.verdict()
		require.Equal(t, verdict.Fail, v.Verdict, s.out.String())
		m := v.Messages
		require.Equal(t, [4]uint64{1, 0, 0, 0}, [4]uint64{m.Missed, m.Duplicated, m.Reordered, m.Corrupted}, s.out.String())
		require.Equal(t, verdict.BySubscribers, v.Evidence.Kind)
		lost := findings(v, ledger.KindLost)
		require.Len(t, lost, 1)
		require.Regexp(t, `^gold-\d missed message \d+ of topic `+feedTopic+`, which 7 of 8 clients received, the first at `, lost[0])
		require.Len(t, proxy.Actions(), 1)
	})
}

// A new user calls soak init for a feed of prices, and runs the result.
func TestInitAndRunPriceFeed(t *testing.T) {
	t.Parallel()
	r := startService(t, "fastapi", services.Options{})
	folder, module, _ := initialize(t, r.URL+"/api/prices", "prices")
	require.Contains(t, module, "same: 'json:$.price',")
	run := beginInFolder(t, folder, "--connections", "10", "--seconds", "12")
	v := run.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, run.out.String())
	require.True(t, *v.MessagesChecked)
	require.Regexp(t, `^PASS: 10 clients received the same \d+ messages; (\d+ more did not arrive and (was|were) not expected; )?the loss of a message that reached no client cannot be detected$`, v.Sentence)
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
