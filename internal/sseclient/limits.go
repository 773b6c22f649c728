package sseclient

import (
	"context"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// A dialGate limits the number of concurrent dials or handshakes.
type dialGate chan struct{}

// processDials limits the dials of the process. Ten thousand at once would overflow the accept queue of the server
// and time out. Each uses about 20 KB. With a round trip of 100 ms the limit allows 1250 dials per second.
var processDials = make(dialGate, 250)

// processHandshakes limits the TLS handshakes of the process. Each uses 60 KB, and more of them at a time are not
// faster: two cores make about 1000 per second.
var processHandshakes = make(dialGate, 200)

// enter waits until the limit allows another entry. It returns false if ctx ends before.
func (g dialGate) enter(ctx context.Context) bool {
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil { // select chooses at random if both are ready
		g.leave()
		return false
	}
	return true
}

func (g dialGate) leave() { <-g }

// needsHandshake reports whether a request to a URL needs a TLS handshake, with its server or with a proxy.
func needsHandshake(url string, proxies proxy.Chooser) bool {
	u, err := ParseURL(url)
	if err != nil {
		return false
	}
	p, err := proxies.For(u)
	return u.Scheme == "https" || err == nil && p.Secure()
}

// A permit allows one dial. Callers that need no permit use nil.
type permit struct{ dials, handshakes dialGate }

// takePermit waits for a permit until ctx ends. secure includes a TLS handshake.
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

// releaseHandshake allows another handshake.
func (t *permit) releaseHandshake() {
	if t != nil && t.handshakes != nil {
		t.handshakes.leave()
		t.handshakes = nil
	}
}

// leave releases the permit.
func (t *permit) leave() {
	t.releaseHandshake()
	if t != nil && t.dials != nil {
		t.dials.leave()
		t.dials = nil
	}
}
