package soak

import "github.com/sse-soak/sse-soak/internal/shard"

// sharedStream counts a stream over HTTP/2, and its connection if it is the first one on that.
func (r *recorder) sharedStream(first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shared == nil {
		r.shared = new(shard.Shared)
	}
	r.shared.Streams++
	if first {
		r.shared.Connections++
	}
}
