package main

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// What the wire does to a stream.
const (
	wireReset    = "reset"    // TCP RST to both sides, between two noops
	wireMidFrame = "midframe" // FIN after the first bytes of a noop
	wireVanish   = "vanish"   // half-open: bytes go nowhere, nobody is told
	wirePause    = "pause"    // all is held back for a while, and comes at once
	wireDribble  = "dribble"  // byte for byte
	wireMerge    = "merge"    // several writes become one
)

// A wireSpec is a proxy in front of the service, which passes streams on by the byte. The zero value is none.
type wireSpec struct {
	Does    string
	Devices []string      // none: all
	Noop    int           // after this noop of a stream; for midframe in it
	After   time.Duration // so long; for pause for how long
}

// A wire is such a proxy.
type wire struct {
	wireSpec
	to     string
	device func(id string) *device // the truth that the wire changes
	server *http.Server
	mu     sync.Mutex
	struck map[string]bool // each device once
	ends   []net.Conn      // of all streams
	open   sync.WaitGroup
}

// startWire proxies listen to the address to.
func startWire(spec wireSpec, listen net.Listener, to string, device func(id string) *device) *wire {
	w := &wire{wireSpec: spec, to: to, device: device, struck: map[string]bool{}}
	mux := http.NewServeMux()
	rest := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to})
	rest.ErrorLog = log.New(io.Discard, "", 0) // clients go
	mux.Handle("/", rest)
	mux.HandleFunc("GET /event/connect", w.connect)
	w.server = &http.Server{Handler: mux}
	go func() { _ = w.server.Serve(listen) }()
	return w
}

func (w *wire) stop() {
	_ = w.server.Close()
	w.mu.Lock()
	for _, c := range w.ends {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.open.Wait()
}

// connect joins a client with the service until one of them ends.
func (w *wire) connect(rw http.ResponseWriter, r *http.Request) {
	w.open.Add(1)
	defer w.open.Done()
	client, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	service, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer service.Close()
	w.mu.Lock()
	w.ends = append(w.ends, client, service)
	w.mu.Unlock()
	r.Close = true // one stream to a connection
	if r.Write(service) != nil {
		return
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = client.Read(make([]byte, 1)) // a client sends no more: it goes
		_ = service.Close()
	}()
	h := &hop{wire: w, client: client, service: service, id: r.URL.Query().Get("id")}
	if errors.Is(h.pass(), errVanished) { // of that nobody is told, until the client goes
		<-gone
	}
}

// A hop is one stream through the wire.
type hop struct {
	*wire
	client, service net.Conn
	id              string
	seen            int // noops
	tail            []byte
}

var (
	errCut      = errors.New("the wire is cut")
	errVanished = errors.New("the wire has swallowed the stream")
)

// pass forwards what the service sends to the client, as the wire does it.
func (h *hop) pass() error {
	buffer := make([]byte, 1<<14)
	for {
		n, err := h.service.Read(buffer)
		if err != nil {
			return err
		}
		if h.Does == wireMerge {
			time.Sleep(30 * time.Millisecond)
			_ = h.service.SetReadDeadline(time.Now().Add(time.Millisecond))
			more, _ := h.service.Read(buffer[n:])
			_ = h.service.SetReadDeadline(time.Time{})
			n += more
		}
		step := n
		if h.Does == wireDribble {
			step = 1
		}
		if h.due(buffer[:n]) {
			if err := h.harm(buffer[:n]); err != nil {
				return err
			}
			continue
		}
		for part := range slices.Chunk(buffer[:n], step) {
			if _, err := h.client.Write(part); err != nil {
				return err
			}
		}
	}
}

// mark is in each noop once.
const mark = "data:"

// due says whether the noop that the wire waits for is in these bytes.
func (h *hop) due(b []byte) bool {
	text := append(h.tail, b...)
	h.seen += bytes.Count(text, []byte(mark))
	h.tail = bytes.Clone(text[max(0, len(text)-len(mark)+1):])
	if h.Noop == 0 || h.seen < h.Noop || len(h.Devices) > 0 && !slices.Contains(h.Devices, h.id) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.struck[h.id]
	h.struck[h.id] = true
	return first
}

// harm passes the bytes on, and does to the stream what the wire does.
func (h *hop) harm(b []byte) error {
	d := h.device(h.id)
	switch h.Does {
	case wireMidFrame:
		d.cutAfter(h.seen - max(bytes.Count(b, []byte(mark)), 1))
		b = b[:min(bytes.Index(b, []byte(mark))+3, len(b))]
	case wireVanish:
		d.cutAfter(h.seen)
	case wirePause:
		time.Sleep(h.After)
	}
	if _, err := h.client.Write(b); err != nil {
		return err
	}
	switch h.Does {
	case wireReset:
		time.Sleep(h.After)
		resetOnClose(h.client)
		resetOnClose(h.service)
		fallthrough
	case wireMidFrame:
		d.gone()
		return errCut
	case wireVanish:
		return errVanished
	}
	return nil
}
