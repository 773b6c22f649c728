package publish

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestEachMessageIsSentOnceInOrderAndConfirmed(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	c := newConfig(t, h.URL+"/")
	begin := c.Start.UnixMicro()
	p := publishAll(t, c)
	require.Equal(t, numbersUpTo(50), h.numbers("a"))
	require.Equal(t, numbersUpTo(50), h.numbers("b"))
	sums := p.Sums()
	require.EqualValues(t, 100, sums.Sent)
	require.EqualValues(t, 100, sums.Confirmed)
	require.EqualValues(t, 100, p.Planned)
	require.Equal(t, begin, p.StartedUS)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, name := range p.Topics {
		for n, m := range p.Topic(i) {
			got := h.topics[name][n]
			require.Equal(t, "r1", got.Run)
			due := p.Due(uint64(2*n + i))
			require.LessOrEqual(t, due, got.Sent, "a message must not be sent before it is due")
			require.InDelta(t, m.SentUS, got.Sent, 500, "the time in the message must be the time of sending")
			require.Less(t, got.Sent, got.at+1)
			require.GreaterOrEqual(t, m.AnsweredUS, got.Sent)
		}
	}
	require.EqualValues(t, 100, p.Answer.Count())
}

func TestRefusedMessagesAreCountedByStatus(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(topic string, seq int) int {
		switch {
		case topic == "b" && seq == 7:
			return http.StatusServiceUnavailable
		case topic == "b" && seq > 40:
			return http.StatusUnauthorized
		}
		return http.StatusAccepted
	})
	c := newConfig(t, h.URL)
	var texts []string
	var mu sync.Mutex
	c.Report = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, text)
	}
	p := publishAll(t, c)
	require.Equal(t, numbersUpTo(50), h.numbers("b"), "refused messages must not be sent again")
	require.EqualValues(t, 11, p.Sums().Refused)
	require.EqualValues(t, 89, p.Sums().Confirmed)
	require.Equal(t, []shard.PublishFailure{
		{State: shard.Refused, Status: 503, Count: 1, Topic: 1, Number: 7, Text: "503 Service Unavailable: answer of the hub"},
		{State: shard.Refused, Status: 401, Count: 10, Topic: 1, Number: 41, Text: "401 Unauthorized: answer of the hub"},
	}, p.Refusals())
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, texts, "message 7 of b was refused: 503 Service Unavailable: answer of the hub")
	require.EqualValues(t, 401, p.Topic(1)[49].Status)
}

func TestSlowTopicFallsBehindWithoutOmittingMessages(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(topic string, _ int) int {
		if topic == "a" {
			time.Sleep(40 * time.Millisecond) // with one due every 10 ms
		}
		return http.StatusOK
	})
	c := newConfig(t, h.URL)
	c.For = time.Second / 4
	p := publishAll(t, c)
	require.Equal(t, numbersUpTo(25), h.numbers("a"))
	require.EqualValues(t, 50, p.Sums().Confirmed)
	require.EqualValues(t, 25, p.Sent(0))
	last := p.Topic(0)[24]
	require.GreaterOrEqual(t, last.SentUS-p.Due(48), int64(700_000))
	require.GreaterOrEqual(t, p.Lag.Max(), 700*time.Millisecond)
	for n := range 24 {
		require.Greater(t, p.Topic(0)[n+1].SentUS+1000, p.Topic(0)[n].AnsweredUS, "the next message must be sent after the response")
	}
	for n, m := range p.Topic(1) {
		require.Less(t, m.SentUS-p.Due(uint64(2*n+1)), last.SentUS-p.Due(48)-250_000, "the other topic must not wait")
	}
}

func TestTopicWithArbitraryOrderDoesNotWait(t *testing.T) {
	t.Parallel()
	var concurrent peak
	h := newHub(t, func(string, int) int {
		concurrent.pass(100 * time.Millisecond)
		return http.StatusOK
	})
	c := newConfig(t, h.URL)
	c.Service, c.Topics = newService(t, "", `,"order":"any"`), []string{"a"}
	p := publishAll(t, c)
	require.Equal(t, numbersUpTo(100), slices.Sorted(slices.Values(h.numbers("a"))))
	require.EqualValues(t, 100, p.Sums().Confirmed)
	require.Greater(t, concurrent.most, 5)
}

func TestSilentServiceLeavesMessagesOpen(t *testing.T) {
	t.Parallel()
	var h *hub
	h = newHub(t, func(topic string, seq int) int {
		if topic == "a" && seq == 3 {
			<-h.ended
		}
		return http.StatusOK
	})
	c := newConfig(t, h.URL)
	c.Timeout = 2 * time.Second
	p := publishAll(t, c)
	require.Equal(t, shard.PublishSums{Sent: 100, Confirmed: 99, Open: 1}, withoutLag(p.Sums()))
	require.Equal(t, shard.Open, p.Topic(0)[2].State)
	require.Zero(t, p.Topic(0)[2].AnsweredUS)
	const unit = 500 // microseconds; the log rounds each time down to a multiple of unit
	// The timeout starts when the message is due or later, but before the time of sending if a connection must be
	// opened.
	require.Greater(t, p.Topic(0)[3].SentUS, p.Due(4)+2_000_000-unit, "the next message must wait for the timeout of the previous one")
	require.Equal(t, []shard.PublishFailure{{State: shard.Open, Count: 1, Number: 3, Text: "no response within 2s"}}, p.Unanswered())
	require.Equal(t, numbersUpTo(50), h.numbers("a"))
}

// withoutLag returns the sums without the lag, which depends on the machine.
func withoutLag(s shard.PublishSums) shard.PublishSums {
	s.Late, s.MaxLagUS = 0, 0
	return s
}

// blockingHub starts a hub that reports each request, and answers when the channel is closed or the test ends.
func blockingHub(t *testing.T, answer <-chan struct{}) (url string, requested chan struct{}) {
	t.Helper()
	requested = make(chan struct{}, 100)
	var h *hub
	h = newHub(t, func(string, int) int {
		requested <- struct{}{}
		select {
		case <-answer:
		case <-h.ended:
		}
		return http.StatusOK
	})
	return h.URL, requested
}

func TestStopWaitsForResponsesAndSendsNothingMore(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	url, requested := blockingHub(t, answer)
	c := newConfig(t, url)
	c.For = time.Hour
	p := start(t, c)
	<-requested
	<-requested
	time.Sleep(100 * time.Millisecond) // further messages become due
	require.Equal(t, shard.PublishSums{Sent: 2, Open: 2}, withoutLag(p.Sums()))
	require.Equal(t, shard.Open, p.Published().Topic(0)[0].State, "Published must return the messages sent so far while the publisher runs")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Stop()
	}()
	select {
	case <-stopped:
		require.Fail(t, "Stop did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(answer)
	await(t, stopped)
	out := p.Published()
	require.False(t, out.Finished)
	require.Equal(t, shard.PublishSums{Sent: 2, Confirmed: 2}, withoutLag(out.Sums()))
	require.EqualValues(t, 720_000, out.Planned)
	p.Stop()
}

func TestPublisherEndsWithItsContext(t *testing.T) {
	t.Parallel()
	url, requested := blockingHub(t, nil)
	c := newConfig(t, url)
	c.For, c.Timeout = time.Hour, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Start(ctx, c)
	require.NoError(t, err)
	<-requested
	<-requested
	cancel()
	await(t, p.Done()) // the publisher does not wait for responses
	require.Equal(t, shard.PublishSums{Sent: 2, Open: 2}, withoutLag(p.Published().Sums()))
	require.Equal(t, "the publisher was stopped", p.Published().Unanswered()[0].Text)
}

func TestPublisherEndsBeforeTheFirstMessageIsDue(t *testing.T) {
	t.Parallel()
	c := newConfig(t, "http://127.0.0.1:1")
	c.Start = time.Now().Add(time.Hour)
	p := start(t, c)
	p.Stop()
	require.Zero(t, p.Published().Messages)
}

// If 200 messages are due at the start, all are sent in order.
func TestLateStartCatchesUp(t *testing.T) {
	t.Parallel()
	h := newHub(t, nil)
	c := newConfig(t, h.URL)
	c.Rate, c.For, c.Start = 100, 2*time.Second, time.Now().Add(-2*time.Second)
	p := publishAll(t, c)
	require.EqualValues(t, 200, p.Sums().Confirmed)
	require.Equal(t, numbersUpTo(100), h.numbers("a"))
	require.GreaterOrEqual(t, p.Sums().MaxLagUS, int64(1_999_000))
	require.GreaterOrEqual(t, p.Sums().Late, uint64(1))
}

func TestStartRefusesInvalidConfigurations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*Config)
		want string
	}{
		"no publish":     {func(c *Config) { c.Service.Publish = nil }, "the description of test has no publish; add it"},
		"no topics":      {func(c *Config) { c.Topics = nil }, "TOPICS must be from 1 to 10000 in a run that publishes, got 0"},
		"too fast":       {func(c *Config) { c.Rate = 20_000 }, "PUBLISH_RATE must be above 0 and at most 10000 messages per second, got 20000"},
		"too many":       {func(c *Config) { c.Rate, c.For = 10_000, 2*time.Hour }, "a run must publish from 1 to 36000000 messages, got 72000000 (10000 per second for 2h0m0s)"},
		"no time":        {func(c *Config) { c.For = 0 }, "a run must publish from 1 to 36000000 messages, got 0 ("},
		"another scheme": {func(c *Config) { c.Base = "ftp://h" }, `publish.url for the topic a must begin with http:// or https:// and a host, got "ftp://h/pub/a"`},
		"invalid port":   {func(c *Config) { c.Base = "http://h:x" }, "publish.url for the topic a must be a URL ("},
		"a space":        {func(c *Config) { c.Base, c.Token = "http://h/a b/my%20token", "my token" }, `publish.url for the topic a must have only printable ASCII characters and no spaces, got "http://h/a b/{token}/pub/a"`},
		"a fragment":     {func(c *Config) { c.Base = "http://h/#x" }, "publish.url for the topic a must have no fragment (#), got "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := newConfig(t, "http://h")
			c.edit(&config)
			_, err := Start(t.Context(), config)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// At most maxInFlight messages are in flight, even if the service is slow. All are sent.
func TestMessagesInFlightAreLimited(t *testing.T) {
	t.Parallel()
	var concurrent peak
	base := serve(t, func(c net.Conn, in *bufio.Reader) {
		for {
			if _, _, err := request(in); err != nil {
				return
			}
			concurrent.pass(300 * time.Millisecond)
			_, _ = io.WriteString(c, okResponse)
		}
	})
	c := newConfig(t, base)
	c.Rate, c.For, c.Topics = shard.MaxRate, time.Second/5, nil
	for i := range 2 * maxInFlight {
		c.Topics = append(c.Topics, fmt.Sprintf("soak-topic-%d", i))
	}
	p := publishAll(t, c)
	require.EqualValues(t, 2*maxInFlight, p.Sums().Confirmed)
	require.LessOrEqual(t, concurrent.most, maxInFlight)
}
