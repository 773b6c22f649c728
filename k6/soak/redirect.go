package soak

import "github.com/sse-soak/sse-soak/internal/shard"

// addRedirect counts a stream that was redirected to another origin.
func (t *tally) addRedirect(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams.redirects = shard.AddRedirect(t.streams.redirects, origin)
}
