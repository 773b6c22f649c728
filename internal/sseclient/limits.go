package sseclient

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// maxDials limits the concurrent dials of Streams, except after a Drop, and of second requests. Ten thousand dials
// would overflow the accept queue of the server and time out. A dial uses about 20 KB. It usually counts until the
// response header arrives, which takes two round trips without TLS. With a round-trip time of 100 ms, the limit then
// allows 1250 dials per second.
const maxDials = 250

// maxHandshakes limits the concurrent TLS handshakes of Streams, except after a Drop. A handshake uses 60 KB. A higher
// limit would not increase the rate, because the CPU limits it: two cores complete about 1000 handshakes per second.
const maxHandshakes = 200

var (
	processDials      = semaphore.NewWeighted(maxDials)
	processHandshakes = semaphore.NewWeighted(maxHandshakes)
)

func needsHandshake(url string, proxies proxy.Chooser) bool {
	u, err := ParseURL(url)
	if err != nil {
		return false
	}
	route, err := proxies.For(u)
	return u.Scheme == "https" || err == nil && route.Secure()
}

// A permit allows one dial. Dials without a permit use nil.
type permit struct{ dials, handshakes *semaphore.Weighted }

// takePermit waits for a permit. It returns false if ctx ends first. If secure is set, the permit includes a TLS
// handshake.
func takePermit(ctx context.Context, secure bool) (p *permit, ok bool) {
	p = new(permit)
	if secure {
		if processHandshakes.Acquire(ctx, 1) != nil {
			return nil, false
		}
		p.handshakes = processHandshakes
	}
	if processDials.Acquire(ctx, 1) != nil {
		p.release()
		return nil, false
	}
	p.dials = processDials
	return p, true
}

func (p *permit) releaseHandshake() {
	if p != nil && p.handshakes != nil {
		p.handshakes.Release(1)
		p.handshakes = nil
	}
}

func (p *permit) release() {
	p.releaseHandshake()
	if p != nil && p.dials != nil {
		p.dials.Release(1)
		p.dials = nil
	}
}
