package http1

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type closer struct{ closed atomic.Bool }

func (c *closer) Close() error {
	c.closed.Store(true)
	return nil
}

func TestTakeReturnsTheLatestConnection(t *testing.T) {
	t.Parallel()
	idle := NewIdleConns[*closer](time.Hour)
	first, second := new(closer), new(closer)
	idle.Put(first)
	idle.Put(second)
	for _, want := range []*closer{second, first} {
		c, _, ok := idle.Take()
		require.True(t, ok)
		require.Same(t, want, c)
	}
	_, _, ok := idle.Take()
	require.False(t, ok)
	idle.Put(first)
	require.NoError(t, idle.Close())
	require.True(t, first.closed.Load())
	require.False(t, second.closed.Load())
}

func TestIdleConnectionsAreClosedAtTheirLimit(t *testing.T) {
	t.Parallel()
	idle := NewIdleConns[*closer](20 * time.Millisecond)
	c := new(closer)
	idle.Put(c)
	require.Eventually(t, c.closed.Load, time.Minute, time.Millisecond)
	_, _, ok := idle.Take()
	require.False(t, ok)
}

func TestShorterTimeoutOfTheServerAppliesAtOnce(t *testing.T) {
	t.Parallel()
	idle := NewIdleConns[*closer](time.Hour)
	first, second := new(closer), new(closer)
	idle.Put(first)
	idle.Put(second)
	latest, _, _ := idle.Take()
	idle.ApplyKeepAlive(http.Header{"Keep-Alive": {"timeout=1"}})
	idle.Put(latest)
	for _, c := range []*closer{first, second} {
		require.Eventually(t, c.closed.Load, 10*time.Second, time.Millisecond)
	}
}

func TestIdleConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	idle := NewIdleConns[*closer](time.Hour)
	first := new(closer)
	idle.Put(first)
	for range maxIdleConns {
		require.False(t, first.closed.Load())
		idle.Put(new(closer))
	}
	require.True(t, first.closed.Load())
}

// A server that has responded on a reused connection may end later ones when it restarts, so reuse remains enabled.
func TestServerThatNeverReusesAConnectionDisablesReuse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ended []bool // for each reused connection, whether the server had ended it
		reuse bool
	}{
		"none is reused":   {nil, true},
		"one is reused":    {[]bool{false}, true},
		"the first ended":  {[]bool{true}, false},
		"later ones ended": {[]bool{false, true, true}, true},
	} {
		idle := NewIdleConns[*closer](time.Hour)
		for _, ended := range tt.ended {
			idle.Put(new(closer))
			_, _, ok := idle.Take()
			require.True(t, ok, name)
			if ended {
				idle.NoteEnd()
			} else {
				idle.NoteResponse()
			}
		}
		idle.Put(new(closer))
		idle.ApplyKeepAlive(http.Header{"Keep-Alive": {"timeout=5"}})
		_, _, ok := idle.Take()
		require.Equal(t, tt.reuse, ok, name)
	}
}

func TestKeepAliveTimeoutLimitsIdleTime(t *testing.T) {
	t.Parallel()
	const maxIdleTime = time.Second
	for header, want := range map[string]time.Duration{
		"": maxIdleTime, "timeout=5": maxIdleTime, "timeout=5, max=1000": maxIdleTime, "max=3, Timeout=1": time.Second / 2, `timeout="1"`: time.Second / 2,
		"timeout=0": 0, "timeout=-1": maxIdleTime, "timeout": maxIdleTime, "max=5": maxIdleTime,
	} {
		idle := NewIdleConns[*closer](maxIdleTime)
		idle.ApplyKeepAlive(http.Header{"Keep-Alive": {header}})
		require.Equal(t, want, idle.limit, header)
	}
}
