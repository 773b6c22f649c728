package live

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report/html"
)

const (
	maxViewers = 50
	// maxConnections limits the descriptors of viewers. A page has two connections, and a few more while it loads.
	maxConnections = 4 * maxViewers
	// idleTimeout is how long the page is updated after the last viewer has left.
	idleTimeout = time.Minute
	// viewerGrace is how long after a disconnect Finish expects a viewer to reconnect.
	viewerGrace = 30 * time.Second
	// finishTimeout is how long Finish waits for viewers to load the report.
	finishTimeout = 15 * time.Second
)

// A Source makes the page. The Server calls Page from one goroutine at a time.
type Source interface {
	Page() *html.LivePage
}

// A Server shows a run in progress to browsers, and then its report. Viewers need the token that URL contains, unless
// the server listens on a loopback address.
type Server struct {
	source     Source
	listener   net.Listener
	server     *http.Server
	token      string // "": none, because the server listens on a loopback address
	epoch      string // random prefix of the ids of this server's events
	done       chan struct{}
	goroutines sync.WaitGroup

	mu             sync.Mutex
	parts          []part
	number         int           // of the last event
	news           chan struct{} // closed at the next event
	lastView       time.Time     // when a viewer last had the page open or requested it
	viewers        int
	pendingViewers map[string]time.Time // when each viewer without the report last opened or left the page, by key
	report         []byte               // nil: the run is in progress, or has no report
	ended          bool                 // the page is no longer updated
}

// A part is a part of the page, with the number of the event that changed it last.
type part struct {
	html.Part
	number int
}

// Listen serves a source at an address, and updates the page once per interval.
func Listen(address string, source Source, interval time.Duration) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("show the run at %s: %w; name another address, or none for a free port of this machine", address, err)
	}
	listener = netutil.LimitListener(listener, maxConnections)
	s := &Server{
		source: source, listener: listener, epoch: randomHex(4), done: make(chan struct{}), news: make(chan struct{}), pendingViewers: map[string]time.Time{},
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		s.token = randomHex(16)
	}
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	s.goroutines.Go(func() { _ = s.server.Serve(listener) })
	s.goroutines.Go(func() { s.run(interval) })
	return s, nil
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// URL returns the address of the page, with the token if the server has one.
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

func (s *Server) run(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
			s.publish()
		}
	}
}

// publish updates the page if it has viewers, or had one within idleTimeout.
func (s *Server) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers > 0 {
		s.lastView = time.Now()
	}
	if !s.ended && time.Since(s.lastView) <= idleTimeout {
		_, _ = s.update() // an error of the page does not affect the run
	}
}

// update makes the page, and numbers the parts that changed. If any changed, it wakes the open event streams. The
// caller holds mu.
func (s *Server) update() (*html.LivePage, error) {
	l := s.source.Page()
	parts, err := l.Parts()
	if err != nil {
		return nil, err
	}
	changed := false
	next := make([]part, len(parts))
	for i, p := range parts {
		next[i] = part{p, s.number + 1}
		index := slices.IndexFunc(s.parts, func(earlier part) bool { return earlier.ID == p.ID })
		if index >= 0 && bytes.Equal(s.parts[index].Content, p.Content) {
			next[i] = s.parts[index]
		} else {
			changed = true
		}
	}
	s.parts = next
	if changed {
		s.number++
		close(s.news)
		s.news = make(chan struct{})
	}
	return l, nil
}

func (s *Server) id() string { return fmt.Sprintf("%s-%d", s.epoch, s.number) }

// changesSince returns an event with the parts that changed after the event with the given id; nil if none changed.
// After an unknown id, the event has all parts.
func (s *Server) changesSince(id string) []byte {
	epoch, text, _ := strings.Cut(id, "-")
	number, err := strconv.Atoi(text)
	if err != nil || epoch != s.epoch || number > s.number {
		number = 0
	}
	changed := map[string]json.RawMessage{}
	for _, p := range s.parts {
		if p.number > number {
			changed[p.ID] = p.Content
		}
	}
	if len(changed) == 0 {
		return nil
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(changed) != nil {
		return nil
	}
	// In JSON, control characters occur only in strings, so escaping them does not change the data.
	return fmt.Appendf(nil, "id: %s\nevent: parts\ndata: %s\n\n", s.id(), format.Escape(strings.TrimSpace(data.String())))
}

// Finish shows the report in place of the run until every viewer has loaded the report, finishTimeout has passed or ctx
// has ended. Then it closes the server. Without a report, it closes the server at once.
func (s *Server) Finish(ctx context.Context, report []byte) {
	s.mu.Lock()
	s.ended, s.report = true, report
	close(s.news)
	s.news = make(chan struct{})
	s.mu.Unlock()
	if report != nil {
		ctx, cancel := context.WithTimeout(ctx, finishTimeout)
		defer cancel()
		poll := time.NewTicker(50 * time.Millisecond)
		defer poll.Stop()
		for !s.allDelivered() && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-poll.C:
			}
		}
	}
	s.Close()
}

// allDelivered reports whether all viewers have loaded the report. A viewer with an open event stream has not loaded
// it: the stream ends after the event about the report.
func (s *Server) allDelivered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers > 0 {
		return false
	}
	for _, at := range s.pendingViewers {
		if time.Since(at) < viewerGrace {
			return false
		}
	}
	return true
}

// Close ends the server. It waits at most a second for requests in progress.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.ended = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close()
	}
	s.goroutines.Wait()
}

func (s *Server) page() (content []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report != nil {
		return s.report, nil
	}
	if s.ended {
		return nil, errEnded
	}
	s.lastView = time.Now()
	l, err := s.update()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = html.WriteLive(format.NewEscaper(&b), l, s.id())
	return b.Bytes(), err
}

var errEnded = errors.New("the run is over, and has no report")

// isCrossSite reports whether a web page of another site makes the request (Fetch Metadata, section 2.3). Such requests
// would load the machine and disturb the measurement. A link that the user follows may be on any site.
func isCrossSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	origin := r.Header.Get("Origin")
	return site == "cross-site" || site == "same-site" || origin != "" && origin != "http://"+r.Host
}

// isAuthorized reports whether a request has the token or, if the server has no token, names a loopback host.
func (s *Server) isAuthorized(r *http.Request) bool {
	if s.token != "" {
		return subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(s.token)) == 1
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() // prevents pages of other hosts from reading this one (DNS rebinding)
}
