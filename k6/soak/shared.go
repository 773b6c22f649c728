package soak

import (
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/k6/sse"
)

var _ sse.SharedObserver = (*observer)(nil)

// Shared counts a stream over HTTP/2, and its connection where it is the first one on that.
func (o *observer) Shared(first bool) {
	r := o.recorder
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
