//go:build !linux

package suspension

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// A Clock exists on Linux only.
type Clock struct{}

// Main does nothing.
func Main() {}

// Start returns an error.
func Start(*exec.Cmd) (*Clock, error) {
	return nil, errors.New("suspend a machine: seccomp_unotify(2) requires Linux")
}

// Suspend does nothing.
func (*Clock) Suspend(context.Context, []int, time.Duration) {}
