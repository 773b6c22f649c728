package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout says for how long what a connection sends may go unacknowledged.
func setUserTimeout(fd uintptr, limit time.Duration) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
}
