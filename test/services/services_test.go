package services

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
)

// A message that is published by the description arrives once and in order, with its number, marker and time, and only
// on the streams of its topic.
func TestServicesMatchTheirDescriptions(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := startService(t, name, Options{})
			v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "20261122-a1b2c3"}
			otherTopic := v
			otherTopic.Topic = "soak-topic-1"
			first, second, otherStream := subscribe(t, r, s, v, ""), subscribe(t, r, s, v, ""), subscribe(t, r, s, otherTopic, "")
			const n = 5
			var want []int64
			for i := int64(1); i <= n; i++ {
				publish(t, r, s, v, i)
				publish(t, r, s, otherTopic, 100+i)
				want = append(want, i)
			}
			// A message of another run is not counted.
			foreign := v
			foreign.Run = "other"
			publish(t, r, s, foreign, 1)
			for _, stream := range []*subscriber{first, second} {
				require.Eventually(t, func() bool { return len(stream.ofKind(service.Foreign)) == 1 }, deadline, 5*time.Millisecond)
				require.Equal(t, want, stream.numbers())
				for _, m := range stream.ofKind(service.Delivery) {
					require.NoError(t, m.Err)
					require.True(t, m.HasSeq && m.HasSentAt)
					require.WithinDuration(t, time.Now(), time.UnixMicro(m.SentAt), deadline)
				}
			}
			require.Eventually(t, func() bool { return len(otherStream.numbers()) == n }, deadline, 5*time.Millisecond)
			require.Equal(t, int64(101), otherStream.numbers()[0])
			require.NoError(t, first.end())
		})
	}
}

// A stream without messages receives heartbeats at the given interval.
func TestHeartbeats(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval time.Duration
		beats    int
	}{
		{"nchan", 2 * time.Second, 3},
		{"mercure", 2 * time.Second, 3}, // the first one is sent at the start
		{"sse-starlette", 2 * time.Second, 3},
		{"django-eventstream", 20 * time.Second, 1}, // always 20 s
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, s := startService(t, c.name, Options{Heartbeat: c.interval})
			require.NotZero(t, s.HeartbeatEvery)
			stream := subscribe(t, r, s, service.Values{Base: r.URL, Topic: "quiet"}, "")
			begin := time.Now()
			require.Eventually(t, func() bool { return len(stream.ofKind(service.Heartbeat)) >= c.beats }, c.interval*time.Duration(c.beats)+deadline, 20*time.Millisecond)
			beats := stream.ofKind(service.Heartbeat)
			last, previous := beats[len(beats)-1].at, begin
			if len(beats) > 1 {
				previous = beats[len(beats)-2].at
			}
			require.InDelta(t, c.interval.Seconds(), last.Sub(previous).Seconds(), 1.5)
		})
	}
	require.Zero(t, description(t, "pocketbase").HeartbeatEvery, "PocketBase sends no heartbeats")
}

// awaitNumbers waits until len(want) messages have arrived, and requires that they have these numbers.
func (s *subscriber) awaitNumbers(t *testing.T, want ...int64) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.numbers()) == len(want) }, deadline, 5*time.Millisecond)
	require.Equal(t, want, s.numbers())
}

// disconnectAfterFirst opens a stream, publishes message 1, disconnects the stream after it, and returns its id.
func disconnectAfterFirst(t *testing.T, r *Instance, s *service.Service, v service.Values) (id string) {
	t.Helper()
	stream := subscribe(t, r, s, v, "")
	publish(t, r, s, v, 1)
	stream.awaitNumbers(t, 1)
	id = stream.ofKind(service.Delivery)[0].id
	stream.Close()
	return id
}

// servicesWithHistory are the services that replay missed messages.
var servicesWithHistory = []string{"nchan", "mercure", "django-eventstream"}

func TestDisconnectedStreamResumes(t *testing.T) {
	for _, name := range servicesWithHistory {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := startService(t, name, Options{})
			v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}
			id := disconnectAfterFirst(t, r, s, v)
			require.NotEmpty(t, id)
			publish(t, r, s, v, 2)
			publish(t, r, s, v, 3)
			stream := subscribe(t, r, s, v, id)
			stream.awaitNumbers(t, 2, 3)
			require.Empty(t, stream.ofKind(service.Gap))
		})
	}
}

// Without a history, messages that were published during a disconnect are lost. Only Mercure announces the loss, as the
// descriptions state.
func TestDisconnectWithoutHistory(t *testing.T) {
	for _, name := range servicesWithHistory {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := startService(t, name, Options{History: -1})
			v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}
			id := disconnectAfterFirst(t, r, s, v)
			publish(t, r, s, v, 2)
			stream := subscribe(t, r, s, v, id)
			publish(t, r, s, v, 3)
			stream.awaitNumbers(t, 3)
			require.Empty(t, stream.ofKind(service.Gap))
			require.Equal(t, name == "mercure", s.Resume.Missed(stream.Header, []byte(id)))
		})
	}
}

// If the history of a Mercure hub no longer has the id, the hub replays no message, and returns the id of its last
// event.
func TestMercureWithShortHistory(t *testing.T) {
	t.Parallel()
	r, s := startService(t, "mercure", Options{History: 2})
	v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}
	id := disconnectAfterFirst(t, r, s, v)
	resumed := subscribe(t, r, s, v, id)
	require.False(t, s.Resume.Missed(resumed.Header, []byte(id)), "the history must still contain the id")
	resumed.Close()
	const count = 60 // the hub removes old messages at about every third message
	for n := int64(2); n <= count; n++ {
		publish(t, r, s, v, n)
	}
	stream := subscribe(t, r, s, v, id)
	publish(t, r, s, v, count+1)
	stream.awaitNumbers(t, count+1)
	require.True(t, s.Resume.Missed(stream.Header, []byte(id)))
	require.NotEqual(t, "earliest", stream.Header.Get(s.Resume.GapHeader))
}

func TestServicesEndStreams(t *testing.T) {
	// Mercure ends a stream after 80 to 100 % of the lifetime, minus 5 s.
	for name, lifetime := range map[string]time.Duration{"mercure": 8 * time.Second, "pocketbase": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := startService(t, name, Options{Lifetime: lifetime})
			stream := subscribe(t, r, s, service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}, "")
			require.Eventually(t, func() bool { return stream.end() != nil }, deadline, 5*time.Millisecond)
			require.ErrorIs(t, stream.end(), io.EOF)
		})
	}
}

// After a restart, a service ends its streams and accepts new streams and messages at the same address.
func TestEachServiceRestarts(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := startService(t, name, Options{})
			v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}
			for _, end := range []func(){r.Down, r.Crash} {
				stream := subscribe(t, r, s, v, "")
				usage, err := r.Usage()
				require.NoError(t, err)
				require.Greater(t, usage.Memory, uint64(1<<20))
				pids, err := r.PIDs()
				require.NoError(t, err)
				require.NotEmpty(t, pids)
				end()
				require.Eventually(t, func() bool { return stream.end() != nil }, deadline, 5*time.Millisecond)
				_, err = r.Usage()
				require.ErrorContains(t, err, "the service is not running")
				_, err = http.Get(r.URL)
				require.Error(t, err)
				require.NoError(t, r.Up(t.Context()))
				stream = subscribe(t, r, s, v, "")
				publish(t, r, s, v, 9)
				stream.awaitNumbers(t, 9)
			}
		})
	}
}

func TestStartErrors(t *testing.T) {
	_, err := Start(t.Context(), "nchen", Options{})
	require.EqualError(t, err, `start service "nchen": unknown name; use one of `+strings.Join(append(append(Names(), names(gateways)...), fastapiRooms.name), ", "))
}
