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
	require.Equal(t, []EventCount{{"noop", 3}, {"a", 1}, {"b", 1}, {"c", 1}, {"…", 3}}, before.Others, "a record does not change any more")
}

func TestExplainAddsTheCause(t *testing.T) {
	t.Parallel()
	refused := New("d", &Config{Interval: time.Second, LatenessLimit: time.Second})
	refused.Connecting(1)
	refused.Closed(2, "status 503", false, false)
	refused.Explain("the backend is full")
	refused.Explain("twice")
	r := refused.Record()
	require.Equal(t, "status 503", r.Reason, "reasons are counted")
	require.Equal(t, "status 503: the backend is full", r.Findings[0].Note)

	good := New("d", &Config{Interval: time.Second, LatenessLimit: time.Second})
	good.Explain("of nothing")
	require.Empty(t, good.Record().Findings)
}
