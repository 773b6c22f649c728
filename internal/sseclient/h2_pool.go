package sseclient

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// h2Patience is how long a request waits for a dial that another one has begun, before it dials, too.
const h2Patience = time.Second

// h2Pool has the connections of a virtual user that streams share, as k6/http has a transport of its own for each.
type h2Pool struct {
	mu    sync.Mutex
	sites map[h2Key]*h2Site
}

// h2Key is what streams have in common that may share a connection. The rest, as of TLS, is the virtual user's.
type h2Key struct {
	scheme, host string
	Sharing
}

// h2Site is what the pool knows of one key.
type h2Site struct {
	conns   []*h2Conn     // the newest last
	plain   bool          // the latest connection spoke HTTP/1.1
	room    int           // streams that the latest connection may have; 0 before one
	dials   int           // under way for waiting requests
	waiting int           // requests that wait for these
	changed chan struct{} // closed when a dial is over
}

// site is that of a key. The caller holds mu.
func (p *h2Pool) site(key h2Key) *h2Site {
	if p.sites == nil {
		p.sites = make(map[h2Key]*h2Site)
	}
	s := p.sites[key]
	if s == nil {
		s = &h2Site{changed: make(chan struct{})}
		p.sites[key] = s
	}
	return s
}

// place reserves a place on a connection. Without one the caller is to dial, and then to call dialed. It waits for the dial
// of another where that may bring a place: a ramp is not to open a connection for each stream.
func (p *h2Pool) place(ctx context.Context, key h2Key, patience time.Duration) (*h2Conn, error) {
	timer := time.NewTimer(cmp.Or(patience, h2Patience))
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(key)
	for {
		if c := s.reserve(); c != nil {
			return c, nil
		}
		if s.plain || s.dials == 0 || s.room > 0 && s.waiting >= s.dials*s.room {
			s.dials++
			return nil, nil
		}
		changed := s.changed
		s.waiting++
		p.mu.Unlock()
		var err error
		impatient := false
		select {
		case <-changed:
		case <-timer.C:
			impatient = true
		case <-ctx.Done():
			err = ctx.Err()
		}
		p.mu.Lock()
		s.waiting--
		if err != nil {
			return nil, err //nolint:wrapcheck // its caller says of what
		}
		if impatient {
			s.dials++
			return nil, nil
		}
	}
}

// reserve takes a place on the newest connection that has one.
func (s *h2Site) reserve() *h2Conn {
	for i := len(s.conns) - 1; i >= 0; i-- {
		if s.conns[i].reserve() {
			return s.conns[i]
		}
	}
	return nil
}

// dialed tells of a dial that place asked for: a connection that streams may share, or nil, and whether the server speaks
// HTTP/1.1.
func (p *h2Pool) dialed(key h2Key, c *h2Conn, plain bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(key)
	s.dials--
	if c != nil {
		s.conns = append(s.conns, c)
		c.mu.Lock()
		s.room = c.room()
		c.mu.Unlock()
	}
	s.plain = plain || s.plain && c == nil
	close(s.changed)
	s.changed = make(chan struct{})
}

// forget takes out a connection that has ended.
func (p *h2Pool) forget(c *h2Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sites {
		for i, other := range s.conns {
			if other == c {
				s.conns = append(s.conns[:i:i], s.conns[i+1:]...)
				return
			}
		}
	}
}

// closeIdle closes the connections that have no stream.
func (p *h2Pool) closeIdle() {
	p.mu.Lock()
	var all []*h2Conn
	for _, s := range p.sites {
		all = append(all, s.conns...)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.retire()
	}
}
