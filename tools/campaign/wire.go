package main

import (
	"bytes"
	"errors"
	"net"
	"net/url"
	"strings"
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

// A wireSpec is a TCP proxy in front of the service. The zero value is none.
type wireSpec struct {
	Does    string
	Devices []string // none: all
	Noop    int      // after this noop of a stream; for midframe in it
	After   time.Duration
	Wait    time.Duration
}

// A wire is such a proxy.
type wire struct {
	wireSpec
	to     string
	tell   func(id string) *device
	listen net.Listener
	open   sync.WaitGroup
	mu     sync.Mutex
	conns  map[net.Conn]bool
	done   bool
	struck map[string]bool // each device once
}

// startWire proxies listen to the address to; tell gives the truth that the wire changes.
func startWire(spec wireSpec, listen net.Listener, to string, tell func(id string) *device) *wire {
	w := &wire{wireSpec: spec, to: to, tell: tell, listen: listen, conns: map[net.Conn]bool{}, struck: map[string]bool{}}
	w.open.Go(func() {
		for {
			c, err := listen.Accept()
			if err != nil {
				return
			}
			w.open.Go(func() { w.serve(c) })
		}
	})
	return w
}

func (w *wire) stop() {
	_ = w.listen.Close()
	w.mu.Lock()
	w.done = true
	for c := range w.conns {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.open.Wait()
}

func (w *wire) track(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	return !w.done
}

func (w *wire) drop(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	_ = c.Close()
}

// serve joins a client with the service until one of them ends.
func (w *wire) serve(client net.Conn) {
	defer w.drop(client)
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer w.drop(server)
	if !w.track(client) || !w.track(server) {
		return
	}
	h := &hop{wire: w, client: client, server: server}
	var up sync.WaitGroup
	up.Go(func() {
		h.upstream()
		_ = server.Close()
	})
	h.downstream()
	if h.fate() != wireVanish { // of that nobody is told, until the client goes
		_ = client.Close()
	}
	up.Wait()
}

// A hop is one connection through the wire.
type hop struct {
	*wire
	client, server net.Conn
	mu             sync.Mutex
	id             string
	did            string
	seen           int // noops
	tail           []byte
}

func (h *hop) fate() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.did
}

// upstream takes requests, and reads in them whose stream this is.
func (h *hop) upstream() {
	buffer := make([]byte, 1<<14)
	for {
		n, err := h.client.Read(buffer)
		if err != nil {
			return
		}
		if line, _, ok := strings.Cut(string(buffer[:n]), "\r\n"); ok {
			h.request(line)
		}
		if _, err := h.server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (h *hop) request(line string) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return
	}
	u, err := url.Parse(words[1])
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.id = ""; u.Path == "/event/connect" {
		h.id = u.Query().Get("id")
	}
}

func (h *hop) downstream() {
	buffer := make([]byte, 1<<14)
	for {
		n, err := h.server.Read(buffer)
		if err != nil || h.pass(buffer[:n]) != nil {
			return
		}
	}
}

var errCut = errors.New("the wire is cut")

// pass forwards bytes to the client, as the wire does it.
func (h *hop) pass(b []byte) error {
	h.mu.Lock()
	id, did := h.id, h.did
	h.mu.Unlock()
	if did == wireVanish {
		return nil
	}
	if id == "" {
		_, err := h.client.Write(b)
		return err
	}
	switch h.Does {
	case wireDribble:
		for i := range b {
			if _, err := h.client.Write(b[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	case wireMerge:
		time.Sleep(30 * time.Millisecond)
		_ = h.server.SetReadDeadline(time.Now().Add(time.Millisecond))
		more := make([]byte, 1<<14)
		n, _ := h.server.Read(more)
		_ = h.server.SetReadDeadline(time.Time{})
		b = append(append([]byte(nil), b...), more[:n]...)
	}
	if !h.due(id, b) {
		_, err := h.client.Write(b)
		return err
	}
	return h.strike(id, b)
}

// due says whether the noop that the wire waits for is in these bytes.
func (h *hop) due(id string, b []byte) bool {
	const mark = "data:"
	text := append(h.tail, b...)
	h.seen += bytes.Count(text, []byte(mark))
	h.tail = append([]byte(nil), text[max(0, len(text)-len(mark)+1):]...)
	if h.Noop == 0 || h.seen < h.Noop || len(h.Devices) > 0 && !contains(h.Devices, id) {
		return false
	}
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	first := !h.struck[id]
	h.struck[id] = true
	return first
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

func (h *hop) strike(id string, b []byte) error {
	now := time.Now()
	d := h.tell(id)
	d.mu.Lock()
	d.struck = true
	d.mu.Unlock()
	switch h.Does {
	case wireMidFrame:
		d.cut(now.Add(-50 * time.Millisecond)) // the noop that is in these bytes was just written
		_, _ = h.client.Write(b[:min(bytes.Index(b, []byte("data:"))+3, len(b))])
		d.gone()
		return errCut
	case wireReset:
		if _, err := h.client.Write(b); err != nil {
			return err
		}
		time.Sleep(h.After)
		for _, c := range []net.Conn{h.client, h.server} {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
		}
		d.gone()
		return errCut
	case wireVanish:
		d.cut(now)
		h.mu.Lock()
		h.did = wireVanish
		h.mu.Unlock()
		_, err := h.client.Write(b)
		return err
	case wirePause:
		time.Sleep(h.Wait)
		_, err := h.client.Write(b)
		return err
	}
	_, err := h.client.Write(b)
	return err
}

// gone says that the client has lost its connection.
func (d *device) gone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.goneAt = time.Now()
}

// cut says that nothing that is written from now on arrives.
func (d *device) cut(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutAt = at
}
