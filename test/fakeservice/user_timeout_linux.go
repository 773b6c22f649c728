package fakeservice

import (
	"time"

	"golang.org/x/sys/unix"
)

func setUserTimeout(fd uintptr, limit time.Duration) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
}
