package soak

import "github.com/sse-soak/sse-soak/internal/shard"

// addSharedStream counts an HTTP/2 stream, and its connection if the stream is the first one on it.
func (t *tally) addSharedStream(first bool) {
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
