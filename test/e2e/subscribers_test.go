//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

const feedTopic = "feed-topic-1"

// priceMessage returns a message whose number is always 0.
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
	for _, variable := range r.Env {
		if token, found := strings.CutPrefix(variable, "PUBLISH_TOKEN="); found {
			request.Header.Set("Authorization", token)
		}
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
func TestComparedClientsFindLostMessage(t *testing.T) {
	eachOf(t, []string{"nchan", "pocketbase"}, func(t *testing.T, name string) {
		message := map[string]string{"nchan": "{ same: 'data' }", "pocketbase": "{ same: 'json:$.record.run' }"}[name]
		r := startService(t, name, services.Options{})
		proxy := startProxy(t, r.URL, faulty.Options{Marker: "price ", Faults: []faulty.Fault{{Kind: faulty.Lose, Message: 25, Once: true}}})
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
