//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

const suspendable = "suspendable"

// bootClock exists on Linux only.
type bootClock struct{}

func startWithBootClock(*exec.Cmd) (*bootClock, error) {
	return nil, errors.New("a suspended machine needs seccomp_unotify(2) of Linux")
}

func (*bootClock) suspend(time.Duration) {}

func execSuspendable([]string) error { return errors.New("Linux only") }
