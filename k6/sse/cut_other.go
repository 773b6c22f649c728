//go:build !linux

package sse

import (
	"errors"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// deafen does nothing: what comes is acknowledged until the buffer of the connection is full.
func deafen(uintptr) error { return nil }

func canVanish() error {
	return errors.New("streams can vanish on Linux only: elsewhere the kernel acknowledges whatever comes")
}

func (s *source) turnCut(*cutting, []byte, *eventstream.Block) bool { return false }
