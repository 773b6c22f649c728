//go:build !linux

package sseclient

import (
	"errors"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// dropPackets does nothing: what comes is acknowledged until the buffer of the connection is full.
func dropPackets(uintptr) error { return nil }

// CanVanish returns an error: connections cannot be left half-open.
func CanVanish() error {
	return errors.New("streams can vanish on Linux only: elsewhere the kernel acknowledges whatever comes")
}

func (s *Stream) turnCut(*cutting, []byte, *eventstream.Block) bool { return false }
