package soak

import "github.com/sse-soak/sse-soak/internal/shard"

// redirected counts a stream that another origin than that of the target serves.
func (r *recorder) redirected(origin string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.redirects = shard.AddRedirect(r.redirects, origin)
}
