package sseclient

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// onDescriptor calls do with the descriptor of a connection.
func onDescriptor(t *testing.T, conn *net.TCPConn, do func(fd int) error) {
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	assert.NoError(t, raw.Control(func(fd uintptr) { assert.NoError(t, do(int(fd))) }))
}

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
	vanished.add(file, CutHalf)
	onDescriptor(t, conn.(*net.TCPConn), func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		assert.NotZero(t, flags&unix.O_NONBLOCK)
		return err
	})
}
