// Package faulty is a proxy between an SSE service and its clients. It forwards each block of a stream as soon as the
// block is complete. Faults lose, repeat, swap, change or delay messages, end streams, or make publish requests fail.
// The proxy records each effect, so that tests can compare the records with the findings of a run.
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

// Options configure a proxy.
type Options struct {
	// Marker is a text that occurs in every message and nowhere else, such as the run's marker (MARKER). "" means
	// `"run":`, which occurs in the messages of load-tests/services.
	Marker  string
	Faults  []Fault
	Publish []PublishFault
	// OnAction, if not nil, is called for each action on a stream, but not for actions on publish requests. It must not
	// call the proxy.
	OnAction func(Action)
	// ByteByByte sends each byte to clients separately. Merged merges bytes that the service sends within 30 ms.
	ByteByByte, Merged bool
}

// A Proxy is a running proxy.
type Proxy struct {
	URL string

	options Options
	server  *http.Server
	done    chan struct{}

	mutex        sync.Mutex   // guards the fields below
	usedFaults   map[int]bool // faults with Once that have affected a stream, by index
	publishCount int
	actions      []Action
}

// Start starts a proxy on this machine in front of the service at a URL.
func Start(service string, o Options) (*Proxy, error) {
	target, err := url.Parse(service)
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
	p := &Proxy{URL: "http://" + l.Addr().String(), options: o, usedFaults: map[int]bool{}, done: make(chan struct{})}
	if o.ByteByByte {
		l = slowListener{l}
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}
	if o.Merged {
		transport.DialContext = dialMerged
	}
	forwarder := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: p.response,
		// The proxy does not respond if the service does not.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	p.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, forwarder) }),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		_ = p.server.Serve(l)
		close(p.done)
	}()
	return p, nil
}

// Stop ends the proxy and all its connections.
func (p *Proxy) Stop() {
	_ = p.server.Close()
	<-p.done
}

// PublishCount returns the number of publish requests, including requests that the service did not receive.
func (p *Proxy) PublishCount() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.publishCount
}

// Actions returns the actions so far.
func (p *Proxy) Actions() []Action {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.actions)
}

func (p *Proxy) record(a Action) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.actions = append(p.actions, a)
	if p.options.OnAction != nil {
		p.options.OnAction(a)
	}
}

// use records that a fault affects a stream, and reports whether this is the first stream that the fault affects.
func (p *Proxy) use(fault int) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	wasUsed := p.usedFaults[fault]
	p.usedFaults[fault] = true
	return !wasUsed
}

type cutKey struct{}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, forwarder http.Handler) {
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if publishes(r, body, p.options.Marker) {
			fault := p.publishFault(r, body)
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
	forwarder.ServeHTTP(w, r)
}

// publishFault counts a publish request, and returns its fault. It records an action if there is a fault.
func (p *Proxy) publishFault(r *http.Request, body []byte) PublishFault {
	topic := topicOf(r.URL.RequestURI())
	if topic == "" {
		topic = topicOf(string(body))
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.publishCount++
	for _, f := range p.options.Publish {
		from := max(1, f.From)
		if p.publishCount >= from && (f.Count == 0 || p.publishCount < from+f.Count) {
			p.actions = append(p.actions, Action{At: time.Now(), Publish: f.Kind, Status: f.Status, Topic: topic, Number: number(decodeForm(body))})
			return f
		}
	}
	return PublishFault{}
}

var errWithheld = errors.New("the proxy withholds this response")

func (p *Proxy) response(r *http.Response) error {
	if r.Request.Context().Value(cutKey{}) != nil {
		return errWithheld
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "text/event-stream" {
		return nil
	}
	conn, _ := r.Request.Context().Value(connKey{}).(net.Conn)
	r.Body = &stream{
		proxy: p, body: r.Body, conn: conn, topic: topicOf(r.Request.URL.RequestURI()), chunk: make([]byte, 4096),
		disconnected: r.Request.Context().Done(), client: r.Request.URL.Query().Get("id"),
	}
	return nil
}
