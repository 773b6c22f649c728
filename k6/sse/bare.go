package sse

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// A Bare stream belongs to no virtual user: no script sees it, and no metric of k6 counts it or its bytes. It is read as
// an EventSource is, on Linux by the same goroutine, so that what delays those delays it too. It does not reconnect.
type Bare struct {
	bytes    int64 // nobody asks; first, where 32-bit machines can add to it atomically
	observer BareObserver
	conn     net.Conn // or the poller's
	body     body
	parser   eventstream.Parser
	closing  atomic.Bool

	mu   sync.Mutex
	wire wire // nil while there is none
}

// A BareObserver is told of a Bare stream, by one goroutine, which it must not hold up: it reads all other streams too.
type BareObserver interface {
	// Event is told of each event; its slices are valid until it returns.
	Event(at time.Time, e *eventstream.Event)
	// Ended is the last call, unless the stream was closed here: why it ended.
	Ended(why error)
}

// OpenBare opens an event stream over plain HTTP, through the proxy of the environment if that names one for the URL, and
// gives it up when nothing comes for that long. When ctx ends before it is open, nothing is left.
func OpenBare(ctx context.Context, rawURL string, silence time.Duration, o BareObserver) (*Bare, error) {
	return openBare(ctx, nil, rawURL, silence, o)
}

func openBare(ctx context.Context, proxies proxy.Chooser, rawURL string, silence time.Duration, o BareObserver) (*Bare, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" {
		return nil, fmt.Errorf("invalid URL %q: it must begin with http://", rawURL)
	}
	through, err := proxies.For(u)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the proxy
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", through.Address(u))
	if err != nil {
		return nil, through.Undialed(err) //nolint:wrapcheck // says all: "dial tcp ADDRESS: …"
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(processStart) })
	a := &answer{conn: conn, url: u, remote: conn.RemoteAddr(), proxy: through}
	on, err := through.Reach(ctx, conn, func(conn net.Conn, name string) *tls.Conn {
		return tls.Client(&underTLS{Conn: conn}, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12})
	})
	r := &request{url: u, method: http.MethodGet}
	if err == nil {
		a.conn = on
		err = cmp.Or(r.send(on, through), a.readHead(r.method))
	}
	if !stop() {
		err = cmp.Or(ctx.Err(), err)
	}
	if err == nil {
		if fail := judge(a, r); fail != nil {
			err = fail.err
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	b := &Bare{observer: o, conn: a.conn}
	b.body.timeout.Store(int64(silence))
	return b, b.start(a)
}

func (b *Bare) start(a *answer) error {
	_ = b.conn.SetDeadline(time.Time{}) // an error comes again at the first read
	p := pollTCP(b.conn, b, &b.bytes)
	b.wire = parked{b.conn}
	if p != nil {
		b.wire, b.conn = p, nil
	}
	b.body.begin(a, b.wire)
	b.body.watch(a.at)
	b.parser.Reset(&b.body, 0)
	if p == nil {
		go b.read()
		return nil
	}
	if err := p.start(); err != nil {
		b.body.unwatch()
		p.hangUp()
		return err
	}
	return nil
}

// Close ends the stream. Its observer may be told of what is being read just now, and of nothing after that.
func (b *Bare) Close() {
	b.closing.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wire != nil {
		b.wire.interrupt()
	}
}

func (b *Bare) read() {
	var e eventstream.Event
	var at time.Time
	b.body.at = &at
	for {
		if err := b.parser.Next(&e); err != nil || b.closing.Load() {
			b.finish(err)
			return
		}
		b.observer.Event(at, &e)
	}
}

// turn reads what has come on a polled stream.
func (b *Bare) turn(buf []byte, block *eventstream.Block) {
	b.parser.Borrow(buf, block)
	b.body.at = &block.At
	for !b.closing.Load() {
		switch err := b.parser.Next(&block.Event); err {
		case nil:
			b.observer.Event(block.At, &block.Event)
		case errNotReady:
			b.parser.Return()
			return
		default:
			b.finish(err)
			return
		}
	}
	b.finish(nil)
}

func (b *Bare) finish(err error) {
	b.body.unwatch()
	b.mu.Lock()
	b.wire.hangUp()
	b.wire = nil
	b.mu.Unlock()
	b.parser.Release()
	if !b.closing.Load() {
		b.observer.Ended(err)
	}
}
