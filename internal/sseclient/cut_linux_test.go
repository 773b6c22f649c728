package sseclient

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func onDescriptor(t *testing.T, conn *net.TCPConn, do func(fd int) error) {
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	assert.NoError(t, raw.Control(func(fd uintptr) { assert.NoError(t, do(int(fd))) }))
}

// A reader of a parked connection notices its close only if a read without data returns.
func TestHalfOpenConnectionIsReadWithoutBlocking(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	left, err := conn.(*net.TCPConn).File()
	require.NoError(t, err)
	vanished.add(left, CutHalf)
	onDescriptor(t, conn.(*net.TCPConn), func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		assert.NotZero(t, flags&unix.O_NONBLOCK)
		return err
	})
}
