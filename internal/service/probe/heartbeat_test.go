package probe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

func TestSingleHeartbeat(t *testing.T) {
	t.Parallel()
	start := time.Now()
	observed := &track{role: plain, open: new(stream.Stream), headersAt: start, endedAt: start.Add(time.Minute)}
	f := &findings{
		session: &session{Config: Config{Pace: time.Second}, requests: &requests{}, tracks: []*track{observed}},
		units:   map[*track][]*unit{observed: {{service.Block{HasComment: true}, start.Add(40 * time.Second)}}},
	}
	require.Equal(t, []string{"Received once: a comment (:), after 40 s. The longest silence of a stream was 40 s."}, f.findHeartbeat().notes)
}

// A stream that opens between two heartbeats of all streams receives the first one early.
func TestSingleHeartbeatOfAllStreams(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for hasOneTimer, interval := range map[bool]float64{true: 0, false: 7} {
		f := &findings{session: &session{Config: Config{Pace: time.Second}, requests: &requests{}, started: start}, units: map[*track][]*unit{}}
		for n := range 3 {
			offset := time.Duration(n) * 250 * time.Millisecond
			at := start.Add(7 * time.Second)
			if !hasOneTimer {
				at = at.Add(offset)
			}
			observed := &track{role: plain, open: new(stream.Stream), headersAt: start.Add(offset), endedAt: start.Add(30 * time.Second)}
			f.session.tracks = append(f.session.tracks, observed)
			f.units[observed] = []*unit{{service.Block{HasComment: true}, at}}
		}
		found := f.findHeartbeat()
		require.InDelta(t, interval, found.interval, 0)
		require.Contains(t, found.notes[0], "(:), after ")
		require.Equal(t, hasOneTimer, len(f.missing) > 0)
	}
}

// Three streams receive each of ten messages at the same time. A fourth stream opens after the first message.
func TestBroadcastMessageIsNoHeartbeatOrGreeting(t *testing.T) {
	t.Parallel()
	start := time.Now()
	f := &findings{session: &session{Config: Config{Pace: time.Second}, requests: &requests{}}, units: map[*track][]*unit{}}
	for n, opened := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 4 * time.Second} {
		observed := &track{role: plain, open: new(stream.Stream), headersAt: start.Add(opened), endedAt: start.Add(time.Minute)}
		if n == 3 {
			observed.role = fresh
		}
		f.session.tracks = append(f.session.tracks, observed)
		for message := range 10 {
			if at := 900*time.Millisecond + time.Duration(message)*5*time.Second; at > opened {
				data := fmt.Appendf(nil, `{"goal":%d}`, message)
				f.units[observed] = append(f.units[observed], &unit{service.Block{Data: data, HasData: true}, start.Add(at)})
			}
		}
	}
	require.Empty(t, f.findHeartbeat().match)
	require.Empty(t, f.greetings())
}

func TestEventThatEndsEachMessageIsNoHeartbeat(t *testing.T) {
	t.Parallel()
	start := time.Now()
	observed := &track{role: plain, open: new(stream.Stream), headersAt: start, endedAt: start.Add(time.Minute)}
	f := &findings{
		session: &session{Config: Config{Pace: time.Second}, requests: &requests{}, tracks: []*track{observed}}, units: map[*track][]*unit{},
	}
	for message := 1; message <= 10; message++ {
		at := start.Add(time.Duration(message) * 2 * time.Second)
		f.units[observed] = append(f.units[observed],
			&unit{service.Block{Event: []byte("chat"), Data: fmt.Append(nil, message), HasData: true}, at},
			&unit{service.Block{Event: []byte("end"), HasData: true}, at.Add(time.Millisecond)})
	}
	require.Empty(t, f.findHeartbeat().match)
}
