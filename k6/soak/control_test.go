package soak

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/control"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/test/address"
)

// reference serves a reference server until stop is called or the test ends.
func reference(t testing.TB, address string) (url string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = control.Serve(ctx, listener)
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return "http://" + listener.Addr().String(), stop
}

func requireControl(t *testing.T, g *controlGroup, condition func(shard.Control) bool) shard.Control {
	t.Helper()
	var last shard.Control
	require.Eventually(t, func() bool {
		g.endBucket(time.Now())
		last = *g.result()
		return condition(last)
	}, time.Minute, 20*time.Millisecond)
	return last
}

// Events during an outage of the reference do not count as delayed.
func TestControlGroupReconnects(t *testing.T) {
	t.Parallel()
	url, stop := reference(t, address.Reserve(t)) // reserved, so that no client gets the port
	g, err := newControlGroup(map[string]string{"CONTROL": "4", "CONTROL_URL": url, "CONTROL_LISTEN": "nonsense"}, 0)
	require.NoError(t, err)
	defer g.close()
	c := requireControl(t, g, func(c shard.Control) bool { return c.Received >= 8 })
	assert.Equal(t, shard.Control{URL: url, Streams: 4, LateMS: 1000, Opened: 4}, shard.Control{
		URL: c.URL, Streams: c.Streams, LateMS: c.LateMS, Opened: c.Opened, Refused: c.Refused, EndedEarly: c.EndedEarly, Lost: c.Lost, Remote: c.Remote,
	})
	assert.GreaterOrEqual(t, c.Expected+4, c.Received)
	stop()
	c = requireControl(t, g, func(c shard.Control) bool { return c.EndedEarly == 4 && c.Refused > 0 })
	assert.Zero(t, c.Late)
	assert.NotEmpty(t, c.Error)
	received := c.Received
	_, _ = reference(t, url[len("http://"):])
	c = requireControl(t, g, func(c shard.Control) bool { return c.Opened == 8 && c.Received >= received+4 })
	assert.Zero(t, c.Late)
	g.close()
	assert.Zero(t, (*controlGroup)(nil).result())
}

func TestNoControlGroupByDefault(t *testing.T) {
	t.Parallel()
	for _, env := range []map[string]string{{}, {"CONTROL": "5"}, {"CONTROL": "0", "CONTROL_URL": "http://127.0.0.1:1"}} {
		g, err := newControlGroup(env, time.Second)
		require.NoError(t, err)
		require.Nil(t, g)
		require.Nil(t, g.endBucket(time.Now()))
		g.close()
	}
	_, err := newControlGroup(map[string]string{"CONTROL": "some"}, time.Second)
	require.ErrorContains(t, err, `CONTROL must be a whole number, got "some"`)
	_, err = newControlGroup(map[string]string{"CONTROL_URL": "https://u:p@h:7070"}, time.Second)
	require.ErrorContains(t, err, "CONTROL_URL must be the address of a reference server")
	require.NotContains(t, err.Error(), "p@h")
}

// Events of the control group do not count as messages, and its streams do not count as streams of the run.
func TestControlGroupIsNotCounted(t *testing.T) {
	t.Parallel()
	url, _ := reference(t, "127.0.0.1:0")
	dir := t.TempDir()
	o := newTestOutput(t, params(t, dir, map[string]string{"RUNNER": "1", "CONTROL": "3", "CONTROL_URL": url}))
	require.NoError(t, o.Start())
	requireControl(t, o.recorder.control, func(c shard.Control) bool { return c.Received >= 6 })
	progress, lateness := o.recorder.progress()
	assert.Equal(t, shard.Progress{}, progress)
	assert.Zero(t, lateness.Count())
	require.NoError(t, o.Stop())
	s, err := shard.ReadFile(dir + "/" + o.name)
	require.NoError(t, err)
	require.NotNil(t, s.Control)
	assert.GreaterOrEqual(t, s.Control.Received, uint64(6))
	assert.Empty(t, s.Connections)
	assert.Zero(t, s.Connect.Count()+s.FirstMessage.Count()+s.Lateness.Count())
	assert.Empty(t, s.Metrics)
	for _, b := range s.Series {
		assert.Zero(t, b.Open+b.Opened+b.Closed+b.Noops+b.Late+b.Faults)
		assert.Nil(t, b.Lateness)
	}
}

func TestIsRemote(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{"http://127.0.0.1:1": false, "http://localhost:1": false, "http://[::1]:1": false, "http://192.0.2.7:1": true, "http://reference:1": true} {
		assert.Equal(t, want, isRemote(url), url)
	}
}
