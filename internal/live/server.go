package live

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report/html"
)

const (
	mostViewers = 50
	// maxConnections limits the descriptors of viewers: each page needs two, and a few more while it loads.
	maxConnections = 4 * mostViewers
	// idle is how long after the last viewer news are still kept for one who comes back.
	idle = time.Minute
	// awaited is how long before the end a viewer may have been cut off, and is still waited for to take the report.
	awaited = 30 * time.Second
	// lingers is how long the server waits for viewers to take the report.
	lingers = 15 * time.Second
)

// A Source makes the page: whole, or with the last points of its charts. It is asked by one goroutine at a time.
type Source interface {
	Page(whole bool) *html.Live
}

// A Server shows a run that goes on to browsers, and the report when it is over. Who comes from this machine only needs no
// token; any other address gets one, which is in URL.
type Server struct {
	source   Source
	listener net.Listener
	server   *http.Server
	token    string // "": loopback only
	done     chan struct{}
	stopped  sync.WaitGroup

	mu      sync.Mutex
	log     eventLog
	changes html.Changes
	wanted  time.Time // when somebody last looked
	viewers map[*viewer]struct{}
	seen    map[string]time.Time // when each viewer's page was last there, by its key
	took    map[string]bool      // who has the report
	report  []byte               // nil: the run goes on
	over    bool
}

// Listen serves a source at an address, and takes what is new of it each time that tick ticks.
func Listen(address string, source Source, tick <-chan time.Time) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("show the run at %s: %w; name another address, or none for a free port of this machine", address, err)
	}
	listener = netutil.LimitListener(listener, maxConnections)
	s := &Server{
		source: source, listener: listener, done: make(chan struct{}), log: newEventLog(),
		viewers: map[*viewer]struct{}{}, seen: map[string]time.Time{}, took: map[string]bool{},
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		s.token = random(16)
	}
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	s.stopped.Go(func() { _ = s.server.Serve(listener) })
	s.stopped.Go(func() { s.run(tick) })
	return s, nil
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// URL is where the page is, with its token.
func (s *Server) URL() string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host, _ = os.Hostname()
	}
	url := "http://" + net.JoinHostPort(host, port) + "/"
	if s.token != "" {
		url += "?token=" + s.token
	}
	return url
}

func (s *Server) run(tick <-chan time.Time) {
	for {
		select {
		case <-s.done:
			return
		case <-tick:
			s.publish()
		}
	}
}

// publish tells the viewers what is new. While nobody looks nothing is made.
func (s *Server) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return
	case len(s.viewers) > 0:
		s.wanted = time.Now()
	case time.Since(s.wanted) > idle:
		s.log.clear()
		return
	}
	if _, err := s.advance(s.log.empty()); errors.Is(err, errStructure) {
		_, _ = s.advance(true) // what cannot be laid out a viewer sees as silence
	}
}

// errStructure says that a chart or a line is new, of which the last points are not all.
var errStructure = errors.New("the page has to be whole")

// advance makes the page, whole or not, and an event of what is new of it. The page is what viewers have then.
func (s *Server) advance(whole bool) (*html.Live, error) {
	l := s.source.Page(whole)
	delta, ok, err := s.changes.Delta(l)
	switch {
	case err != nil:
		return nil, err
	case ok && !s.log.empty():
		s.add("delta", delta)
		return l, nil
	case l.Partial:
		return nil, errStructure
	}
	if err := s.changes.Begin(l); err != nil {
		return nil, err
	}
	snapshot, err := html.Snapshot(l)
	s.add("snapshot", snapshot)
	return l, err
}

// add gives an event to all viewers. One that does not read fast enough is cut off: it comes back, and goes on where it was.
func (s *Server) add(name string, data []byte) {
	if data == nil {
		return
	}
	e := s.log.add(name, data)
	for v := range s.viewers {
		select {
		case v.events <- e:
		default:
			s.drop(v)
		}
	}
}

func (s *Server) drop(v *viewer) {
	if _, there := s.viewers[v]; there {
		delete(s.viewers, v)
		close(v.events)
	}
	s.see(v.key)
}

// see notes that a page is there, or was until now.
func (s *Server) see(key string) {
	s.seen[key] = time.Now()
	if len(s.seen) > 10*mostViewers {
		maps.DeleteFunc(s.seen, func(_ string, at time.Time) bool { return time.Since(at) > awaited })
	}
}

// Finish shows the report in the place of the run from now on, and returns when everybody who looked at the run has taken
// it, or after a while, or when ctx ends. No report is no reason to wait.
func (s *Server) Finish(ctx context.Context, report []byte) {
	s.mu.Lock()
	s.over, s.report = true, report
	for v := range s.viewers {
		s.drop(v) // it is told so when it comes back, and at once where it still reads
	}
	s.mu.Unlock()
	if report != nil {
		ctx, cancel := context.WithTimeout(ctx, lingers)
		defer cancel()
		look := time.NewTicker(50 * time.Millisecond)
		defer look.Stop()
		for !s.allTook() && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-look.C:
			}
		}
	}
	s.Close()
}

func (s *Server) allTook() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, at := range s.seen {
		if !s.took[key] && time.Since(at) < awaited {
			return false
		}
	}
	return true
}

// Close ends the server: at once for who looks at the run, when it is sent for who loads the report.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.over = true
	for v := range s.viewers {
		s.drop(v)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close()
	}
	s.stopped.Wait()
}

// page is what a browser gets first: the run as it is now and the id of the last event that is in it, or the report.
func (s *Server) page() (content []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report != nil {
		return s.report, nil
	}
	if s.over {
		return nil, errOver
	}
	s.wanted = time.Now()
	l, err := s.advance(true)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = html.WriteLive(format.Escaping(&b), l, s.log.last())
	return b.Bytes(), err
}

var errOver = errors.New("the run is over, and has no report")

// fromAnotherSite reports whether a web page of another site makes the request (Fetch Metadata, section 2.3): such requests would
// load the machine and disturb the measurement. Links that the user follows may come from any site.
func fromAnotherSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	origin := r.Header.Get("Origin")
	return site == "cross-site" || site == "same-site" || origin != "" && origin != "http://"+r.Host
}

func (s *Server) authorized(r *http.Request) bool {
	if s.token != "" {
		return subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(s.token)) == 1
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() // a page of another name must not read this one (DNS rebinding)
}
