// Package faulty is a proxy between an SSE service and its clients. It passes everything through unchanged, byte by
// byte and at once, except for its faults: it loses, repeats, swaps or changes one message of a stream, or closes the
// stream there; it refuses requests that publish, or leaves them without an answer. It records what it did.
//
// It is for tests, which compare that with the findings of a run.
package faulty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Options say what a proxy does.
type Options struct {
	// Marker is a text that all messages have and nothing else, such as the run's marker (MARKER). "" is `"run":`, which
	// the messages of our descriptions have in them.
	Marker  string
	Faults  []Fault
	Publish []PublishFault
	// Did, where it is not nil, is called with each deed. It must not call the proxy.
	Did func(Deed)
	// ByteByByte sends every byte to clients on its own. Merged joins what the service sends within some milliseconds.
	ByteByByte, Merged bool
}

// Proxy is a proxy that runs.
type Proxy struct {
	URL string

	options Options
	server  *http.Server
	ended   chan struct{}

	mutex     sync.Mutex   // of what follows
	struck    map[int]bool // faults with Once that have concerned a stream, by their index
	streams   int
	places    map[string]int // streams of each topic
	published int
	brought   int
	deeds     []Deed
}

// Start starts a proxy on this machine before the service at a URL.
func Start(service string, o Options) (*Proxy, error) {
	to, err := url.Parse(service)
	if err != nil {
		return nil, fmt.Errorf("start the proxy: %w", err)
	}
	if o.Marker == "" {
		o.Marker = `"run":`
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the proxy: %w", err)
	}
	p := &Proxy{URL: "http://" + l.Addr().String(), options: o, places: map[string]int{}, struck: map[int]bool{}, ended: make(chan struct{})}
	if o.ByteByByte {
		l = slowListener{l}
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}
	if o.Merged {
		transport.DialContext = dialMerged
	}
	through := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: p.response,
		// What the service does not answer, the proxy does not either.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	p.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, through) }),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		_ = p.server.Serve(l)
		close(p.ended)
	}()
	return p, nil
}

// Stop ends the proxy and all that goes through it.
func (p *Proxy) Stop() {
	_ = p.server.Close()
	<-p.ended
}

// Deeds are what it has done so far.
func (p *Proxy) Deeds() []Deed {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.deeds)
}

// Streams is how many streams were opened so far, Published how many requests came that publish.
func (p *Proxy) Streams() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.streams
}

// Published is how many requests came that publish, with those that the service did not get.
func (p *Proxy) Published() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.published
}

// Brought is how many messages the service has brought on all streams, with those that the proxy did not pass on.
func (p *Proxy) Brought() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.brought
}

func (p *Proxy) came() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.brought++
}

func (p *Proxy) did(d Deed) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.deeds = append(p.deeds, d)
	if p.options.Did != nil {
		p.options.Did(d)
	}
}

// first reports whether the fault of that index has concerned no stream so far.
func (p *Proxy) first(fault int) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	struck := p.struck[fault]
	p.struck[fault] = true
	return !struck
}

// place is that of a stream among those of its topic.
func (p *Proxy) place(topic string) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.places[topic]++
	return p.places[topic]
}

// cutKey says in the context of a request that its answer is to be kept from the publisher.
type cutKey struct{}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, through http.Handler) {
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if publishes(r, body, p.options.Marker) {
			fault := p.publish(r, body)
			switch fault.Kind {
			case Refuse:
				http.Error(w, http.StatusText(fault.Status), fault.Status)
				return
			case CutBefore:
				panic(http.ErrAbortHandler)
			case CutAfter:
				r = r.WithContext(context.WithValue(r.Context(), cutKey{}, true))
			}
		}
	}
	through.ServeHTTP(w, r)
}

// publish counts a request that publishes, and finds what is to be done to it.
func (p *Proxy) publish(r *http.Request, body []byte) PublishFault {
	topic := topicOf(r.URL.RequestURI())
	if topic == "" {
		topic = topicOf(string(body))
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.published++
	for _, f := range p.options.Publish {
		from := max(1, f.From)
		if p.published >= from && (f.Count == 0 || p.published < from+f.Count) {
			p.deeds = append(p.deeds, Deed{At: time.Now(), Publish: f.Kind, Status: f.Status, Topic: topic, Number: number(plain(body)), Path: r.URL.RequestURI()})
			return f
		}
	}
	return PublishFault{}
}

var errKept = errors.New("the proxy keeps this answer")

// response puts the faults into what the service answers.
func (p *Proxy) response(r *http.Response) error {
	if r.Request.Context().Value(cutKey{}) != nil {
		return errKept
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "text/event-stream" {
		return nil
	}
	s := &stream{
		proxy: p, from: r.Body, conn: connOf(r.Request), path: r.Request.URL.RequestURI(), chunk: make([]byte, 4096),
		gone: r.Request.Context().Done(), client: r.Request.URL.Query().Get("id"),
	}
	s.topic = topicOf(s.path)
	if s.topic != "" {
		s.place = p.place(s.topic)
	}
	p.mutex.Lock()
	p.streams++
	s.number = p.streams
	p.mutex.Unlock()
	r.Body = s
	return nil
}
