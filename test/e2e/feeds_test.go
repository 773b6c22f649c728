//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

var (
	feeds         = flag.Int("feeds", 2, "runs of TestFeedsWithAndWithoutFaults with a fault, and as many without")
	parallelFeeds = flag.Int("feeds.parallel", 2, "of these at a time")
)

// A feedSpec is a service that sends the same messages to all clients, without numbers, and what it does wrong.
type feedSpec struct {
	fault    string // on one client: lost, doubled, swapped, changed; half: lost on half of them; "": none
	at       int    // the message
	client   int
	repeats  bool   // content often stays the same
	personal bool   // messages name their client
	history  int    // messages that a new stream begins with
	lag      int    // of client 1, in messages
	cut      string // the stream of client 0 is closed once: resumed, or lost; "": it is not
}

const feedClients = 6

// A feedServer sends prices.
type feedServer struct {
	feedSpec
	mu     sync.Mutex
	sent   []string // contents
	queues map[chan int]int
	joined int // the first message of client 1
	cutAt  int
	ready  bool // all clients were connected
	cut    bool
}

func (f *feedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client := -1
	if n, ok := strings.CutPrefix(r.URL.Query().Get("id"), "feed-"); ok {
		client, _ = strconv.Atoi(n)
	}
	queue := make(chan int, 1000)
	f.mu.Lock()
	from := max(len(f.sent)-f.history, 0)
	if last, err := strconv.Atoi(r.Header.Get("Last-Event-ID")); err == nil && f.feedSpec.cut == "resumed" {
		from = last + 1
	}
	for n := from; n < len(f.sent); n++ {
		queue <- n
	}
	f.queues[queue] = client
	if client == 1 && f.joined == 0 {
		f.joined = len(f.sent)
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.queues, queue)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case n := <-queue:
			if n < 0 {
				return
			}
			for _, one := range f.messages(client, n) {
				_, _ = fmt.Fprint(w, one)
			}
			w.(http.Flusher).Flush()
		}
	}
}

// messages are what a client receives at message n.
func (f *feedServer) messages(client, n int) (out []string) {
	if client == 1 {
		f.mu.Lock()
		n -= f.lag
		early := n < f.joined
		f.mu.Unlock()
		if early {
			return nil
		}
	}
	message := func(n int, content string) string {
		id := ""
		if f.feedSpec.cut == "resumed" {
			id = fmt.Sprintf("id: %d\n", n)
		}
		named := 0
		if f.personal {
			named = client
		}
		return fmt.Sprintf("event: price\n%sdata: {\"price\":%s,\"client\":%d}\n\n", id, content, named)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	mine, own := client == f.client, message(n, f.sent[n])
	switch {
	case f.fault == "half" && client%2 == 0 && n == f.at, f.fault == "lost" && mine && n == f.at:
		return nil
	case f.fault == "doubled" && mine && n == f.at:
		return []string{own, own}
	case f.fault == "changed" && mine && n == f.at:
		return []string{message(n, "123456789")}
	case f.fault == "swapped" && mine && n == f.at:
		return nil
	case f.fault == "swapped" && mine && n == f.at+1:
		return []string{own, message(n-1, f.sent[n-1])}
	}
	return []string{own}
}

// run sends messages until the test ends.
func (f *feedServer) run(done <-chan struct{}, random *rand.Rand) {
	price := 10_000
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(50+random.IntN(100)) * time.Millisecond):
		}
		if !f.repeats || random.IntN(3) > 0 {
			price += 1 + random.IntN(20)
		}
		f.mu.Lock()
		if f.repeats && n > 2 && (n >= f.at && n <= f.at+2) {
			price += 37 // neighbours with the same content are interchangeable
		}
		f.sent = append(f.sent, strconv.Itoa(price))
		clients := map[int]bool{}
		for _, client := range f.queues {
			clients[client] = true
		}
		if delete(clients, -1); !f.ready && len(clients) == feedClients {
			f.ready, f.at, f.cutAt = true, n+40+random.IntN(40), n+30+random.IntN(20)
		}
		for queue, client := range f.queues {
			if client == 0 && f.feedSpec.cut != "" && !f.cut && n == f.cutAt {
				f.cut = true
				queue <- -1
				continue
			}
			queue <- n
		}
		f.mu.Unlock()
	}
}

// Each run has one fault or none, and any of the other properties.
func TestFeedsWithAndWithoutFaults(t *testing.T) {
	t.Parallel()
	slots := make(chan struct{}, *parallelFeeds)
	for i := range 2 * *feeds {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			soakFeed(t, uint64(i), i%2 == 0)
		})
	}
}

func soakFeed(t *testing.T, seed uint64, clean bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 35))
	f := &feedServer{queues: map[chan int]int{}, cutAt: 1 << 30, feedSpec: feedSpec{
		at: 1 << 30, client: 2 + random.IntN(feedClients-2), repeats: random.IntN(2) == 0, personal: random.IntN(3) == 0,
		history: 3 * random.IntN(2), lag: 20 * (random.IntN(4) / 3), cut: []string{"", "", "resumed", "lost"}[random.IntN(4)],
	}}
	if f.cut = false; f.feedSpec.cut == "resumed" {
		f.history = 0
	}
	var want [4]uint64
	if !clean {
		f.fault = []string{"lost", "doubled", "swapped", "changed", "half"}[random.IntN(5)]
		want = map[string][4]uint64{"lost": {1}, "doubled": {0, 1}, "swapped": {0, 0, 1}, "changed": {0, 0, 0, 1}, "half": {feedClients / 2}}[f.fault]
	}
	server := httptest.NewServer(f)
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { f.run(done, random) })
	t.Cleanup(func() { close(done); running.Wait(); server.CloseClientConnections(); server.Close() })
	resume := "none"
	if f.feedSpec.cut == "resumed" {
		resume = "header"
	}
	description := filepath.Join(t.TempDir(), "feed.js")
	require.NoError(t, os.WriteFile(description, fmt.Appendf(nil, `export default { name: 'feed', connect: { url: '{base}/feed?id={id}' }, resume: { by: '%s' },
  message: { event: 'price', same: 'json:$.price' } };`, resume), 0o600))
	r := begin(t, nil, "--service", description, "--backend-url", server.URL, "--prefix", "feed-", "--connections", strconv.Itoa(feedClients),
		"--seconds", "22", "--runners", "2", "--reconnect", "--control", "0")
	v := r.judged()
	m := v.Messages
	about := fmt.Sprintf("seed %d: %+v\n%s", seed, f.feedSpec, r.out.String())
	require.Equal(t, want, [4]uint64{m.Missed, m.Duplicated, m.Reordered, m.Corrupted}, about)
	outcome := verdict.Pass
	if !clean {
		outcome = verdict.Fail
	}
	require.Equal(t, outcome, v.Verdict, about)
}
