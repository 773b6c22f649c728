package sseclient

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A reader of a half-open connection detects the close only if reads do not block.
func TestHalfOpenConnectionIsReadWithoutBlocking(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	require.NoError(t, err)
	processVanishedConns.add(file, CutHalfOpen)
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		assert.NoError(t, err)
		assert.NotZero(t, flags&unix.O_NONBLOCK, "reads must not block")
	}))
}
