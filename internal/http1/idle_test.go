package http1

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type closer struct{ closed bool }

func (c *closer) Close() error {
	c.closed = true
	return nil
}

func TestTakeReturnsTheLatestOfALimitedNumberOfConnections(t *testing.T) {
	t.Parallel()
	idle := NewIdleConns[*closer](time.Hour)
	conns := make([]closer, maxIdleConns+1)
	for i := range conns {
		idle.Put(&conns[i])
	}
	require.True(t, conns[0].closed)
	for i := maxIdleConns; i > 1; i-- {
		c, _, ok := idle.Take()
		require.True(t, ok && c == &conns[i])
	}
	require.NoError(t, idle.Close())
	require.True(t, conns[1].closed)
	require.False(t, conns[2].closed)
	_, _, ok := idle.Take()
	require.False(t, ok)
}

// A server may announce a shorter timeout. The next use of the set then closes all connections that have reached it.
func TestIdleConnectionsAreClosedAtTheirLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, put := range []bool{true, false} {
			idle := NewIdleConns[*closer](time.Hour)
			first, second := new(closer), new(closer)
			idle.Put(first)
			time.Sleep(400 * time.Millisecond)
			idle.Put(second)
			idle.ApplyKeepAlive(http.Header{"Keep-Alive": {"timeout=1"}})
			time.Sleep(100 * time.Millisecond)
			if put {
				idle.Put(new(closer))
			} else {
				c, age, ok := idle.Take()
				require.True(t, ok && c == second && age == 100*time.Millisecond)
			}
			require.True(t, first.closed)
			require.False(t, second.closed)
			time.Sleep(time.Second)
			_, _, ok := idle.Take()
			require.False(t, ok)
			require.Equal(t, put, second.closed)
		}
	})
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
