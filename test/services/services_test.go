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

// Each service does what its description says: a message that the description publishes comes with its number, its
// marker and its time, on the streams of its topic and on no other, in order, once.
func TestServicesMatchTheirDescriptions(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := up(t, name, Options{})
			v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "20261122-a1b2c3"}
			other := v
			other.Topic = "soak-topic-1"
			first, second, elsewhere := subscribe(t, r, s, v, ""), subscribe(t, r, s, v, ""), subscribe(t, r, s, other, "")
			const n = 5
			var want []int64
			for i := int64(1); i <= n; i++ {
				publish(t, r, s, v, i)
				publish(t, r, s, other, 100+i)
				want = append(want, i)
			}
			// Of another run: it must not be counted.
			foreign := v
			foreign.Run = "somebody"
			publish(t, r, s, foreign, 1)
			for _, stream := range []*stream{first, second} {
				require.Eventually(t, func() bool { return len(stream.of(service.Foreign)) == 1 }, soon, 5*time.Millisecond)
				require.Equal(t, want, stream.numbers())
				for _, m := range stream.of(service.Delivery) {
					require.NoError(t, m.Err)
					require.True(t, m.HasSeq && m.HasSentAt)
					require.WithinDuration(t, time.Now(), time.UnixMicro(m.SentAt), soon)
				}
			}
			require.Eventually(t, func() bool { return len(elsewhere.numbers()) == n }, soon, 5*time.Millisecond)
			require.Equal(t, int64(101), elsewhere.numbers()[0])
			require.NoError(t, first.end())
		})
	}
}

// A stream without messages gets the heartbeat of its description, as often as it was set.
func TestHeartbeats(t *testing.T) {
	for _, c := range []struct {
		name  string
		every time.Duration
		beats int
	}{
		{"nchan", 2 * time.Second, 3},
		{"mercure", 2 * time.Second, 3}, // the first is of the start
		{"sse-starlette", 2 * time.Second, 3},
		{"django-eventstream", 20 * time.Second, 1}, // cannot be set
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, s := up(t, c.name, Options{Heartbeat: c.every})
			require.NotZero(t, s.HeartbeatEvery)
			stream := subscribe(t, r, s, service.Values{Base: r.URL, Topic: "quiet"}, "")
			begin := time.Now()
			require.Eventually(t, func() bool { return len(stream.of(service.Heartbeat)) >= c.beats }, c.every*time.Duration(c.beats)+soon, 20*time.Millisecond)
			beats := stream.of(service.Heartbeat)
			last, before := beats[len(beats)-1].at, begin
			if len(beats) > 1 {
				before = beats[len(beats)-2].at
			}
			require.InDelta(t, c.every.Seconds(), last.Sub(before).Seconds(), 1.5)
		})
	}
	require.Zero(t, description(t, "pocketbase").HeartbeatEvery, "PocketBase sends none")
}

// resumes are the services that send again what a stream missed.
var resumes = []string{"nchan", "mercure", "django-eventstream"}

func TestDisconnectedStreamResumes(t *testing.T) {
	for _, name := range resumes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := up(t, name, Options{})
			v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}
			stream := subscribe(t, r, s, v, "")
			publish(t, r, s, v, 1)
			require.Eventually(t, func() bool { return len(stream.numbers()) == 1 }, soon, 5*time.Millisecond)
			id := stream.of(service.Delivery)[0].id
			require.NotEmpty(t, id)
			stream.cut()
			publish(t, r, s, v, 2)
			publish(t, r, s, v, 3)
			stream = subscribe(t, r, s, v, id)
			require.Eventually(t, func() bool { return len(stream.numbers()) == 2 }, soon, 5*time.Millisecond)
			require.Equal(t, []int64{2, 3}, stream.numbers())
			require.Empty(t, stream.of(service.Gap))
		})
	}
}

// What was published while a stream was cut is gone where there is no history. Mercure says so; nchan and
// django-eventstream, as their descriptions say, do not.
func TestWithoutHistory(t *testing.T) {
	for _, name := range resumes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := up(t, name, Options{History: -1})
			v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}
			stream := subscribe(t, r, s, v, "")
			publish(t, r, s, v, 1)
			require.Eventually(t, func() bool { return len(stream.numbers()) == 1 }, soon, 5*time.Millisecond)
			id := stream.of(service.Delivery)[0].id
			stream.cut()
			publish(t, r, s, v, 2)
			stream = subscribe(t, r, s, v, id)
			publish(t, r, s, v, 3)
			require.Eventually(t, func() bool { return len(stream.numbers()) == 1 }, soon, 5*time.Millisecond)
			require.Equal(t, []int64{3}, stream.numbers())
			require.Empty(t, stream.of(service.Gap))
			require.Equal(t, name == "mercure", s.Resume.Missed(stream.header, []byte(id)))
		})
	}
}

// A Mercure hub of whose history the id is gone names the last event that it has, and brings nothing of what was missed.
func TestMercureWithShortHistory(t *testing.T) {
	t.Parallel()
	r, s := up(t, "mercure", Options{History: 2})
	v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}
	stream := subscribe(t, r, s, v, "")
	publish(t, r, s, v, 1)
	require.Eventually(t, func() bool { return len(stream.numbers()) == 1 }, soon, 5*time.Millisecond)
	id := stream.of(service.Delivery)[0].id
	again := subscribe(t, r, s, v, id)
	require.False(t, s.Resume.Missed(again.header, []byte(id)), "it is there")
	again.cut()
	stream.cut()
	const more = 60 // the hub forgets what is too old at every third message or so
	for n := int64(2); n <= more; n++ {
		publish(t, r, s, v, n)
	}
	stream = subscribe(t, r, s, v, id)
	publish(t, r, s, v, more+1)
	require.Eventually(t, func() bool { return len(stream.numbers()) == 1 }, soon, 5*time.Millisecond)
	require.Equal(t, []int64{more + 1}, stream.numbers())
	require.True(t, s.Resume.Missed(stream.header, []byte(id)))
	require.NotEqual(t, "earliest", stream.header.Get(s.Resume.GapHeader))
}

func TestServicesEndStreams(t *testing.T) {
	// Mercure ends a stream after 80 to 100 % of this, less 5 s.
	for name, lifetime := range map[string]time.Duration{"mercure": 8 * time.Second, "pocketbase": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := up(t, name, Options{Lifetime: lifetime})
			stream := subscribe(t, r, s, service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}, "")
			require.Eventually(t, func() bool { return stream.end() != nil }, soon, 5*time.Millisecond)
			require.ErrorIs(t, stream.end(), io.EOF)
		})
	}
}

// Restarted, a service ends its streams and takes new ones and messages at the same address.
func TestEachServiceRestarts(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := up(t, name, Options{})
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
				require.Eventually(t, func() bool { return stream.end() != nil }, soon, 5*time.Millisecond)
				_, err = r.Usage()
				require.ErrorContains(t, err, "it does not run")
				_, err = http.Get(r.URL)
				require.Error(t, err)
				require.NoError(t, r.Up(t.Context()))
				stream = subscribe(t, r, s, v, "")
				publish(t, r, s, v, 9)
				require.Eventually(t, func() bool { return len(stream.numbers()) == 1 }, soon, 5*time.Millisecond)
			}
		})
	}
}

func TestStartErrors(t *testing.T) {
	_, err := Start(t.Context(), "nchen", Options{})
	require.EqualError(t, err, `start service "nchen": there are `+strings.Join(append(append(Names(), names(gateways)...), fastapiRooms.name), ", "))
}
