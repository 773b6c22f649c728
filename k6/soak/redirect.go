package soak

import "github.com/sse-soak/sse-soak/internal/shard"

// redirected counts a stream that another origin than that of the target serves.
func (t *tally) redirected(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams.redirects = shard.AddRedirect(t.streams.redirects, origin)
}
