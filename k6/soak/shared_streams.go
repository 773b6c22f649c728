package soak

import "github.com/sse-soak/sse-soak/internal/shard"

// sharedStream counts a stream over HTTP/2, and its connection if it is the first one on that.
func (t *tally) sharedStream(first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams.shared == nil {
		t.streams.shared = new(shard.Shared)
	}
	t.streams.shared.Streams++
	if first {
		t.streams.shared.Connections++
	}
}
