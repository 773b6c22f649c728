package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestUserTimeoutIsSet(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	s.open("a")
	var ms int
	var err error
	s.hub.call(func() {
		ms, err = unix.GetsockoptInt(int(s.hub.devices["a"].fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	})
	require.NoError(t, err)
	require.Equal(t, 20000, ms)
}

// However a stream ends, its descriptor is closed.
func TestDescriptorsAreReleased(t *testing.T) {
	t.Parallel()
	p := startChild(t, "--noop-interval=20ms", "--backend-fault=reset:id=r-1;truncate:id=r-2")
	s := &testService{t: t, addr: p.addr}
	open := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
		require.NoError(t, err)
		return len(entries)
	}
	s.request("GET", "/healthz", "")
	base := open()
	var list []*stream
	for i := range 60 {
		list = append(list, s.open(fmt.Sprintf("r-%d", i)))
	}
	require.GreaterOrEqual(t, open(), base+50)
	for i, c := range list {
		switch {
		case i == 1 || i == 2:
			_, err := c.readAll()
			require.Error(t, err)
		case i%3 == 0:
			s.disconnect(c.id)
		case i%3 == 1:
			c.conn.Close()
		default:
			s.open(c.id, resumeAfter(0)).conn.Close()
		}
	}
	eventually(t, "all descriptors are closed", func() bool { return open() <= base+1 })
}

// A late report about a descriptor does not end a newer stream with the same descriptor.
func TestReusedDescriptor(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	c := s.open("a")
	s.hub.call(func() {
		d := s.hub.devices["a"]
		s.hub.closeDeparted([]departure{{fd: d.fd, gen: d.gen - 1}, {fd: 1 << 20, gen: 1}})
	})
	require.Equal(t, []uint64{1, 2}, c.numbers(2))
}
