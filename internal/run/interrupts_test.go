package run

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timeout(1) sends its signal twice at once, which must not kill the runners. A later signal kills them. The test is
// not parallel, because every session in this process receives the signals.
func TestRepeatedSignal(t *testing.T) {
	graceful, force, stop := interrupts(t.Context())
	defer stop()
	self := syscall.Getpid()
	require.NoError(t, syscall.Kill(self, syscall.SIGTERM))
	<-graceful.Done()
	require.NoError(t, syscall.Kill(self, syscall.SIGTERM))
	select {
	case <-force.Done():
		t.Fatal("the second signal must count as an echo of the first")
	case <-time.After(signalEcho):
	}
	require.NoError(t, syscall.Kill(self, syscall.SIGTERM))
	<-force.Done()
}
