package probe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReasonForNothingToResumeFrom(t *testing.T) {
	t.Parallel()
	for want, last := range map[string]*unit{
		"No event had an id before the disconnect, so":    block(0, "", "a"),
		"The last id before the disconnect was empty, so": withID(block(0, "", "a"), ""),
	} {
		f := newFindings()
		f.session.disconnected, f.session.reopenedAt = f.add(plain, 0, last), started
		r := f.findResume()
		require.Contains(t, r.notes[0], want)
		require.Equal(t, object{{name: "by", value: "none"}}, r.fields)
	}
}

func TestGreetingIsNoRepeatedMessage(t *testing.T) {
	t.Parallel()
	f := newFindings()
	add := func(r role, opened time.Duration, messages ...int) *track {
		units := []*unit{block(opened, "", "hello")}
		for _, m := range messages {
			at := max(opened+time.Millisecond, time.Duration(m)*2*time.Second)
			units = append(units, withID(block(at, "", "x"), fmt.Sprint(m)))
		}
		return f.add(r, opened, units...)
	}
	f.session.disconnected = add(plain, 0, 1, 2, 3)
	reopened := add(resumed, 10*time.Second, 3, 4, 5, 6)
	add(fresh, 10*time.Second, 6)
	require.Equal(t, 1, f.countRepeated(reopened), "message 3 is repeated")
}

func TestPublishedMessagesMayBeResentSlowly(t *testing.T) {
	t.Parallel()
	f := newFindings()
	reopened := f.add(resumed, 0, block(0, "", "a"), block(2*time.Second, "", "b"), block(4*time.Second, "", "c"))
	missed := func() map[string]bool {
		keys := map[string]bool{}
		for _, u := range f.units[reopened] {
			keys[f.key(u)] = true
		}
		return keys
	}
	require.Equal(t, 1, f.countResent(reopened, missed()), "later messages of the service may be new ones with the same content")
	f.session.published = []publication{{seq: 1}}
	require.Equal(t, 3, f.countResent(reopened, missed()), "published messages are unique")
}
