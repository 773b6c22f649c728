package sseclient

import (
	"context"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// A dialGate bounds the number of sources that dial at a time: ten thousand at once would overflow the server's
// accept queue, and wait for each other until their time is up. Each uses about 20 KB here until it is done. With a
// round trip of 100 ms the limit allows 1250 dials per second. One for the process.
type dialGate chan struct{}

var processDials = make(dialGate, 250)

// processHandshakes bounds how many of them are before the end of their TLS handshake. Each takes 60 KB until then, and
// more of them at a time are no faster: two cores make some 1000 in a second.
var processHandshakes = make(dialGate, 200)

// enter waits for its turn until ctx ends.
func (g dialGate) enter(ctx context.Context) bool {
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil { // both at once
		g.leave()
		return false
	}
	return true
}

func (g dialGate) leave() { <-g }

// handshakes reports whether a request to a URL begins with a TLS handshake: with its server, or with a proxy.
func handshakes(url string, proxies proxy.Chooser) bool {
	u, err := ParseURL(url)
	if err != nil {
		return false
	}
	p, err := proxies.For(u)
	return u.Scheme == "https" || err == nil && p.Secure()
}

// A permit allows one dial. nil is that of a caller that needs none.
type permit struct{ dials, handshakes dialGate }

// takePermit waits for one until ctx ends. secure reports whether there is a TLS handshake to make.
func takePermit(ctx context.Context, secure bool) (t *permit, ok bool) {
	t = new(permit)
	if secure {
		if !processHandshakes.enter(ctx) {
			return nil, false
		}
		t.handshakes = processHandshakes
	}
	if !processDials.enter(ctx) {
		t.leave()
		return nil, false
	}
	t.dials = processDials
	return t, true
}

// shaken lets another one make its handshake.
func (t *permit) shaken() {
	if t != nil && t.handshakes != nil {
		t.handshakes.leave()
		t.handshakes = nil
	}
}

func (t *permit) leave() {
	t.shaken()
	if t != nil && t.dials != nil {
		t.dials.leave()
		t.dials = nil
	}
}
