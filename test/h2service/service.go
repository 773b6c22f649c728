// Package h2service is a service of noops that speaks HTTP/2 and HTTP/1.1 at one address, plain or over TLS. It is as small
// as one can be that holds 200,000 streams and says exactly what it sent: two goroutines and one write for all streams of a
// connection, and some hundred bytes for each stream.
package h2service

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// Config is what a service does.
type Config struct {
	Interval time.Duration // between two noops of a stream
	// Slots divides the interval: each stream has its noops in one of them. 1 is a broadcast, where all come in the same instant.
	Slots int
	// StreamsPerConnection is SETTINGS_MAX_CONCURRENT_STREAMS.
	StreamsPerConnection uint32
	TLS                  *tls.Config // nil: plain, HTTP/2 with prior knowledge
}

// Service is a handler of connections.
type Service struct {
	Config
	api  http.Handler
	sent atomic.Uint64 // noops, all in all

	mu          sync.Mutex
	connections map[*connection]bool
	devices     map[string]*device
	order       []*device
	open        int
	next        int // slot
}

// New makes a service that serves nobody yet.
func New(c Config) *Service {
	s := &Service{Config: c, connections: map[*connection]bool{}, devices: map[string]*device{}}
	s.api = s.routes()
	return s
}

// Serve takes connections until ctx ends.
func (s *Service) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// What speaks HTTP/1.1 goes on to net/http.
	rest := handed{address: listener.Addr(), conns: make(chan net.Conn), over: ctx.Done()}
	plain := &http.Server{Handler: s.api, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(nowhere{}, "", 0)}
	var done sync.WaitGroup
	done.Go(func() { _ = plain.Serve(rest) })
	done.Go(func() { s.tick(ctx) })
	stop := context.AfterFunc(ctx, func() {
		_ = errors.Join(listener.Close(), plain.Close())
		for _, c := range s.present() {
			_ = c.conn.Close()
		}
	})
	defer func() { stop(); cancel(); _ = plain.Close(); done.Wait() }()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		done.Go(func() { s.welcome(ctx, conn, rest) })
	}
}

// welcome finds out what a client speaks: by ALPN, or by the first bytes that it sends.
func (s *Service) welcome(ctx context.Context, conn net.Conn, rest handed) {
	if s.TLS != nil {
		secure := tls.Server(conn, s.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return
		}
		conn = secure
	}
	begun := bufio.NewReader(conn)
	first, err := begun.Peek(3) // no method of HTTP/1.1 begins like the preface
	switch {
	case err != nil:
		_ = conn.Close()
	case string(first) == http2.ClientPreface[:3]:
		s.serveHTTP2(ctx, conn, begun)
	default:
		rest.take(readFirst{conn, begun})
	}
}

// present are the connections that hold streams or may come to.
func (s *Service) present() (all []*connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		all = append(all, c)
	}
	return all
}

// tick lets the noops of one slot after the other fall due. One that is late catches up: none is left out.
func (s *Service) tick(ctx context.Context) {
	start, step := time.Now(), s.Interval/time.Duration(s.Slots)
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(start.Add(time.Duration(n) * step))):
		}
		for _, c := range s.present() {
			c.due(n % s.Slots)
		}
	}
}

// handed is a listener that gives out connections that another one accepted.
type handed struct {
	address net.Addr
	conns   chan net.Conn
	over    <-chan struct{}
}

func (h handed) take(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.over:
		_ = c.Close()
	}
}

func (h handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.over:
		return nil, net.ErrClosed
	}
}

func (h handed) Close() error   { return nil }
func (h handed) Addr() net.Addr { return h.address }

// readFirst is a connection of which something was read already.
type readFirst struct {
	net.Conn
	begun *bufio.Reader
}

func (c readFirst) Read(p []byte) (int, error) { return c.begun.Read(p) }

// nowhere is where net/http says that a client went away.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
