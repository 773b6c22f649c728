//go:build !linux

package sse

import "github.com/sse-soak/sse-soak/k6/sse/eventstream"

// polls says that plain streams are polled.
const polls = false

// deafen does nothing: what comes is acknowledged until the buffer of the connection is full.
func deafen(uintptr) {}

func (s *source) turnCut(*cutting, []byte, *eventstream.Block) bool { return false }
