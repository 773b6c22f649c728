package soak

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newGates(t *testing.T) (gates [2]*startGate) {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	for i := range gates {
		env := map[string]string{}
		for variable, file := range map[string]*os.File{"START_FD": reader, "READY_FD": writer} {
			fd, err := syscall.Dup(int(file.Fd())) // a gate closes its descriptors
			require.NoError(t, err)
			env[variable] = strconv.Itoa(fd)
		}
		gates[i], err = newStartGate(env)
		require.NoError(t, err)
	}
	require.NoError(t, reader.Close())
	require.NoError(t, writer.Close())
	return gates
}

func TestGateOpensWhenAllRunnersAreReady(t *testing.T) {
	t.Parallel()
	gates := newGates(t)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	gates[0].wait(interrupted)
	select {
	case <-gates[0].open:
		require.Fail(t, "the gate must not open before the other runner is ready")
	default:
	}
	gates[1].wait(t.Context())
	gates[0].wait(t.Context())

	gates = newGates(t)
	require.NoError(t, gates[1].ready.Close()) // as if the runner had ended
	gates[0].wait(t.Context())
}

func TestPhasesBeginTogether(t *testing.T) {
	t.Parallel()
	s := &noopService{}
	h := holderOf(t, serveTCP(t, s.handler()), "")
	gates := newGates(t)
	h.r.gate = gates[0]
	var othersReady, early atomic.Bool
	s.onConnect = func() { early.Store(early.Load() || !othersReady.Load()) }
	time.AfterFunc(500*time.Millisecond, func() {
		othersReady.Store(true)
		gates[1].wait(t.Context())
	})
	require.True(t, h.run(t, strings.Replace(holdTen, "reconnect: false", `reconnect: false, phases: [{name: "spread", at: 500, action: "dropAtOnce"}]`, 1)))
	require.False(t, early.Load(), "streams must not open before the other runner is ready")
	require.Len(t, s.connects, 20)
}
