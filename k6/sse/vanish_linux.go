package sse

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// canVanish says why a connection cannot be left half-open: a sandbox may forbid the filter that deafen attaches.
var canVanish = sync.OnceValue(func() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
		err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing})
	}
	if err != nil {
		return fmt.Errorf("streams cannot vanish here: the kernel refuses a filter on a socket (SO_ATTACH_FILTER: %w), as some sandboxes have it; run where it is allowed", err)
	}
	return nil
})
