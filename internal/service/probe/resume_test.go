package probe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

func TestReasonForNothingToResumeFrom(t *testing.T) {
	t.Parallel()
	for want, block := range map[string]service.Block{
		"No event had an id before the disconnect, so":    {Data: []byte("a"), HasData: true},
		"The last id before the disconnect was empty, so": {Data: []byte("a"), HasData: true, HasID: true},
	} {
		lost := &track{role: plain}
		f := &findings{
			session: &session{disconnected: lost, reopenedAt: time.Now()}, units: map[*track][]*unit{lost: {{block, time.Now()}}},
		}
		r := f.findResume()
		require.Contains(t, r.notes[0], want)
		require.Equal(t, object{{name: "by", value: "none"}}, r.fields)
	}
}

func TestGreetingIsNoRepeatedMessage(t *testing.T) {
	t.Parallel()
	start := time.Now()
	f := &findings{session: &session{Config: Config{Pace: time.Second}, requests: &requests{}}, units: map[*track][]*unit{}}
	f.heartbeat.matches = func(*unit) bool { return false }
	add := func(r role, opened time.Duration, messages ...int) *track {
		added := &track{role: r, open: new(stream.Stream), headersAt: start.Add(opened), endedAt: start.Add(time.Minute)}
		f.session.tracks = append(f.session.tracks, added)
		f.units[added] = []*unit{{service.Block{Data: []byte("hello"), HasData: true}, added.headersAt}}
		for _, m := range messages {
			at := added.headersAt.Add(time.Millisecond)
			if sent := start.Add(time.Duration(m) * 2 * time.Second); sent.After(at) {
				at = sent
			}
			f.units[added] = append(f.units[added], &unit{service.Block{ID: fmt.Append(nil, m), HasID: true, Data: []byte("x"), HasData: true}, at})
		}
		return added
	}
	f.session.disconnected = add(plain, 0, 1, 2, 3)
	reopened := add(resumed, 10*time.Second, 3, 4, 5, 6)
	add(fresh, 10*time.Second, 6)
	require.Equal(t, 1, f.countRepeated(reopened), "message 3 is repeated")
}

func TestPublishedMessagesMayBeResentSlowly(t *testing.T) {
	t.Parallel()
	reopened := &track{role: resumed, headersAt: time.Now()}
	f := &findings{session: &session{Config: Config{Pace: time.Second}}, units: map[*track][]*unit{reopened: nil}}
	for i, text := range []string{"a", "b", "c"} {
		at := reopened.headersAt.Add(time.Duration(2*i) * time.Second)
		f.units[reopened] = append(f.units[reopened], &unit{service.Block{Data: []byte(text), HasData: true}, at})
	}
	missed := map[string]bool{}
	for _, u := range f.units[reopened] {
		missed[f.key(u)] = true
	}
	require.Equal(t, 1, f.countResent(reopened, missed), "later messages of the service may be new ones with the same content")

	f.session.published = []publication{{seq: 1}}
	missed = map[string]bool{"a": true, "b": true, "c": true}
	require.Equal(t, 3, f.countResent(reopened, missed), "published messages are unique")
}
