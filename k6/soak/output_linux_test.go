package soak

import (
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// The test is not parallel, because the signal would cancel the deliveries of other tests.
func TestInterruptWhileStoppingKeepsTheShard(t *testing.T) {
	dir := t.TempDir()
	o := newTestOutput(t, params(t, dir, nil))
	require.NoError(t, o.Start())
	o.running.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		<-o.stop
		// A signal to this thread arrives before Tgkill returns.
		if err := unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
		other := make(chan os.Signal, 1)
		signal.Notify(other, syscall.SIGUSR1)
		signal.Stop(other) // waits until SIGINT has been handled
	})
	require.NoError(t, o.Stop())
	s, err := shard.ReadFile(filepath.Join(dir, o.name))
	require.NoError(t, err)
	require.Equal(t, shard.Finished, s.Runner.State)
}
