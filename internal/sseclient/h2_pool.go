package sseclient

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

const h2MaxWait = time.Second

// An h2Pool contains the HTTP/2 connections that the requests of a Client may share.
type h2Pool struct {
	mu    sync.Mutex
	sites map[siteKey]*h2Site
}

// A siteKey identifies the requests of a Client that may share a connection.
type siteKey struct {
	scheme, host string
	Sharing
}

// An h2Site contains the connections for one siteKey, and the state of the dials.
type h2Site struct {
	conns    []*h2Conn     // the newest last
	isHTTP1  bool          // the server chose HTTP/1.1 for the newest connection
	capacity int           // maximum number of streams of the newest connection; 0: there was no connection yet
	dials    int           // number of dials in progress
	waiters  int           // number of requests that wait for these dials
	dialEnd  chan struct{} // closed at the end of a dial
}

// site returns the site for a key, and creates it if necessary. The caller holds mu.
func (p *h2Pool) site(key siteKey) *h2Site {
	if p.sites == nil {
		p.sites = make(map[siteKey]*h2Site)
	}
	s := p.sites[key]
	if s == nil {
		s = &h2Site{dialEnd: make(chan struct{})}
		p.sites[key] = s
	}
	return s
}

// reserve makes a reservation on a connection and returns the connection. It waits up to maxWait (0 means h2MaxWait)
// for other requests whose dials may provide a connection. A ramp thus does not open a connection for each stream. If
// reserve returns neither a connection nor an error, the caller must dial and then call endDial.
func (p *h2Pool) reserve(ctx context.Context, key siteKey, maxWait time.Duration) (*h2Conn, error) {
	timer := time.NewTimer(cmp.Or(maxWait, h2MaxWait))
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(key)
	for {
		if c := s.reserve(); c != nil {
			return c, nil
		}
		if s.isHTTP1 || s.dials == 0 || s.capacity > 0 && s.waiters >= s.dials*s.capacity {
			s.dials++
			return nil, nil
		}
		dialEnd := s.dialEnd
		s.waiters++
		p.mu.Unlock()
		var err error
		timedOut := false
		select {
		case <-dialEnd:
		case <-timer.C:
			timedOut = true
		case <-ctx.Done():
			err = ctx.Err()
		}
		p.mu.Lock()
		s.waiters--
		if err != nil {
			return nil, err
		}
		if timedOut {
			s.dials++
			return nil, nil
		}
	}
}

// reserve makes a reservation on the newest connection that allows one. It returns nil if no connection does.
func (s *h2Site) reserve() *h2Conn {
	for i := len(s.conns) - 1; i >= 0; i-- {
		if s.conns[i].reserve() {
			return s.conns[i]
		}
	}
	return nil
}

// endDial records the result of a dial after reserve. c is nil if the dial failed, or if the server chose HTTP/1.1.
func (p *h2Pool) endDial(key siteKey, c *h2Conn, isHTTP1 bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(key)
	s.dials--
	if c != nil {
		s.conns = append(s.conns, c)
		c.mu.Lock()
		s.capacity = c.capacity()
		c.mu.Unlock()
	}
	s.isHTTP1 = isHTTP1 || s.isHTTP1 && c == nil
	close(s.dialEnd)
	s.dialEnd = make(chan struct{})
}

func (p *h2Pool) forget(c *h2Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sites {
		s.conns = slices.DeleteFunc(s.conns, func(other *h2Conn) bool { return other == c })
	}
}

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
