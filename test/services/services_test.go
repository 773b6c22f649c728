package services

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
)

// Each service does what its description says: a message that the description publishes comes with its number, its
// marker and its time, on the streams of its topic and on no other, in order, once.
func TestEachServiceIsAsDescribed(t *testing.T) {
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
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := description(t, definitionOf(name).service)
			if s.Every == 0 {
				t.Skip("it has none")
			}
			const every = 2 * time.Second
			r, s := up(t, name, Options{Heartbeat: every})
			stream := subscribe(t, r, s, service.Values{Base: r.URL, Topic: "quiet"}, "")
			require.Eventually(t, func() bool { return len(stream.of(service.Heartbeat)) >= 3 }, soon, 20*time.Millisecond)
			beats := stream.of(service.Heartbeat)
			require.InDelta(t, every.Seconds(), beats[2].at.Sub(beats[1].at).Seconds(), 1.5)
		})
	}
}

// resumes are the services that send again what a stream missed.
var resumes = []string{"nchan"}

func TestAStreamThatWasCutGoesOn(t *testing.T) {
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

func TestStartSaysWhatIsWrong(t *testing.T) {
	_, err := Start(t.Context(), "nchen", Options{})
	require.EqualError(t, err, `start service "nchen": there are `+strings.Join(Names(), ", "))
}

func definitionOf(name string) definition {
	for _, d := range definitions {
		if d.name == name {
			return d
		}
	}
	return definition{}
}
