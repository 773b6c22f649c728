package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOtherEventsAreCountedByName(t *testing.T) {
	t.Parallel()
	l := New("d", &Config{Interval: time.Second, LatenessLimit: time.Second})
	for _, name := range []string{"noop", "noop", "a", "b", "c", "d", "e", "noop", "d"} {
		l.CountEvent(name)
	}
	before := l.Record()
	l.CountEvent("noop")
	require.Equal(t, []EventCount{{"noop", 3}, {"a", 1}, {"b", 1}, {"c", 1}, {"…", 3}}, before.Others, "later events must not change a record")
}
