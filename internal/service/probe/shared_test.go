package probe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// sharedFindings returns the findings of three streams with a greeting and ten prices, one every 300 ms. content
// returns the data of a price.
func sharedFindings(content func(client, message int) string) *findings {
	f := &findings{session: &session{Config: Config{Pace: 100 * time.Millisecond}}, units: map[*track][]*unit{}}
	f.heartbeat.matches = func(*unit) bool { return false }
	started := time.Unix(1_700_000_000, 0)
	for stream := range 3 {
		t := newSharedTrack(started)
		f.session.tracks = append(f.session.tracks, t)
		f.units[t] = []*unit{{service.Block{Event: []byte("hello"), Data: fmt.Append(nil, stream), HasData: true}, started.Add(time.Millisecond)}}
		for message := 1; message <= 10; message++ {
			f.units[t] = append(f.units[t], &unit{
				service.Block{Event: []byte("price"), Data: []byte(content(stream, message)), HasData: true},
				started.Add(time.Duration(message)*300*time.Millisecond + time.Duration(stream)*time.Millisecond),
			})
		}
	}
	return f
}

func TestSharedMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content func(stream, message int) string
		want    string
	}{
		"the same data": {func(_, message int) string { return fmt.Sprintf(`{"price":%d}`, message*7919%100) }, `{"event":["price"],"same":"data"}`},
		"a personal field": {
			func(stream, message int) string {
				return fmt.Sprintf(`{"a":"x","price":%d,"you":%d}`, message*7919%100, stream)
			},
			`{"event":["price"],"same":"json:$.price"}`,
		},
		"other data per stream": {func(stream, message int) string { return fmt.Sprintf(`{"price":%d}`, message*7919%100+stream) }, `{}`},
		"constant data":         {func(int, int) string { return `{"price":1}` }, `{}`},
	} {
		require.Equal(t, c.want, string(toJSON(sharedFindings(c.content).findShared(object{}))), name)
	}
}

func TestRepeatedContentIsShared(t *testing.T) {
	t.Parallel()
	started := time.Now()
	messages := func(content func(n int) uint64) (out []sighting) {
		for n := range 40 {
			out = append(out, sighting{content(n), started.Add(time.Duration(n) * time.Second)})
		}
		return out
	}
	for name, c := range map[string]struct {
		content func(n int) uint64
		want    int
	}{
		"six values":  {func(n int) uint64 { return uint64(max(n%6, 6-n%6)) }, 40}, // #nosec G115 -- small
		"few changes": {func(n int) uint64 { return uint64(n / 10) }, 0},           // #nosec G115 -- small
		"two values":  {func(n int) uint64 { return uint64(n % 2) }, 0},            // #nosec G115 -- small
	} {
		list := messages(c.content)
		require.Equal(t, c.want, countCommon([][]sighting{list, list}, started.Add(-1), started.Add(time.Hour)), name)
	}
}

func newSharedTrack(started time.Time) *track {
	return &track{role: plain, headersAt: started, endedAt: started.Add(4 * time.Second), open: &stream.Stream{Response: new(sseclient.Response)}}
}

func TestRareNamesAreShared(t *testing.T) {
	t.Parallel()
	f := sharedFindings(func(_, message int) string { return fmt.Sprintf(`{"price":%d}`, message*7919%100) })
	for _, blocks := range f.units {
		blocks[0].Event = []byte("user-1") // each name is rarer than minShared
		for i, u := range blocks[1:] {
			u.Event = fmt.Appendf(nil, "user-%d", i/2)
		}
	}
	blocks := f.units[f.session.tracks[0]]
	blocks[0].Event = []byte("user-99") // arrived on one stream only, before the others were open
	require.Equal(t, `{"same":"data"}`, string(toJSON(f.findShared(object{}))))
}
