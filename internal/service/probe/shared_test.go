package probe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sharedFindings returns the findings of three streams with a greeting and ten prices, one every 3 s. content returns
// the data of a price.
func sharedFindings(content func(client, message int) string) *findings {
	f := newFindings()
	for stream := range 3 {
		units := []*unit{block(time.Millisecond, "hello", fmt.Sprint(stream))}
		for message := 1; message <= 10; message++ {
			at := time.Duration(message)*3*time.Second + time.Duration(stream)*time.Millisecond
			units = append(units, block(at, "price", content(stream, message)))
		}
		f.add(plain, 0, units...)
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
	for name, c := range map[string]struct {
		content func(n int) uint64
		want    int
	}{
		"six values":  {func(n int) uint64 { return uint64(max(n%6, 6-n%6)) }, 40}, // #nosec G115 -- small
		"few changes": {func(n int) uint64 { return uint64(n / 10) }, 0},           // #nosec G115 -- small
		"two values":  {func(n int) uint64 { return uint64(n % 2) }, 0},            // #nosec G115 -- small
	} {
		var list []sighting
		for n := range 40 {
			list = append(list, sighting{c.content(n), started.Add(time.Duration(n) * time.Second)})
		}
		require.Equal(t, c.want, countCommon([][]sighting{list, list}, started.Add(-1), started.Add(time.Hour)), name)
	}
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
