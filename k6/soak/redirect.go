package soak

import (
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/k6/sse"
)

var _ sse.RedirectObserver = (*observer)(nil)

// Redirected counts a stream that another origin than the target's serves.
func (o *observer) Redirected(origin string) {
	r := o.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.redirects = shard.AddRedirect(r.redirects, origin)
}
