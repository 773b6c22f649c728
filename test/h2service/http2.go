package h2service

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	usualWindow = 65_535 // RFC 9113, 6.9.2
	mostData    = 16_384 // in a frame, 4.2
	mostHeaders = 64 << 10
)

// serveHTTP2 reads a connection to its end.
func (s *Service) serveHTTP2(ctx context.Context, conn net.Conn, from io.Reader) {
	c := s.newConnection(conn)
	c.http2, c.open, c.window, c.initialWindow = true, map[uint32]*stream{}, usualWindow, usualWindow
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(from, preface); err != nil || string(preface) != http2.ClientPreface {
		_ = conn.Close()
		return
	}
	c.begin()
	defer c.close()
	err := c.put(func(f *http2.Framer) error {
		return f.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: s.StreamsPerConnection}, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: mostHeaders})
	})
	frames := http2.NewFramer(io.Discard, from)
	frames.SetReuseFrames()
	frames.MaxHeaderListSize, frames.ReadMetaHeaders = mostHeaders, hpack.NewDecoder(4096, nil)
	for err == nil {
		var f http2.Frame
		if f, err = frames.ReadFrame(); err == nil {
			err = c.take(f)
		}
	}
}

// put writes frames that are not of a stream of noops.
func (c *connection) put(what func(*http2.Framer) error) error {
	var out bytes.Buffer
	if err := what(http2.NewFramer(&out, nil)); err != nil {
		return err
	}
	return c.send(out.Bytes())
}

// take does what a frame says. Priorities, GOAWAY and what is unknown mean nothing here.
func (c *connection) take(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.request(f)
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.settings(f)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.put(func(out *http2.Framer) error { return out.WritePing(true, f.Data) })
		}
	case *http2.WindowUpdateFrame:
		c.mu.Lock()
		defer c.mu.Unlock()
		if s := c.open[f.StreamID]; s != nil {
			s.window += int(f.Increment)
		} else if f.StreamID == 0 {
			c.window += int(f.Increment)
		}
		c.widened()
	case *http2.RSTStreamFrame:
		c.mu.Lock()
		defer c.mu.Unlock()
		if s := c.open[f.StreamID]; s != nil {
			c.remove(s, "client")
			c.changed.Broadcast()
		}
	case *http2.DataFrame: // no body of a request matters here
		if n := f.Length; n > 0 {
			return c.put(func(out *http2.Framer) error { return out.WriteWindowUpdate(0, n) })
		}
	}
	return nil
}

func (c *connection) settings(f *http2.SettingsFrame) error {
	if size, ok := f.Value(http2.SettingInitialWindowSize); ok {
		c.mu.Lock()
		for _, s := range c.open {
			s.window += int(size) - c.initialWindow
		}
		c.initialWindow = int(size)
		c.widened()
		c.mu.Unlock()
	}
	return c.put((*http2.Framer).WriteSettingsAck)
}

// request opens a stream of noops, or has the routes answer.
func (c *connection) request(f *http2.MetaHeadersFrame) error {
	number := f.StreamID
	refuse := func(code http2.ErrCode) error {
		return c.put(func(out *http2.Framer) error { return out.WriteRSTStream(number, code) })
	}
	r, err := http.NewRequest(f.PseudoValue("method"), f.PseudoValue("path"), nil)
	if err != nil {
		return refuse(http2.ErrCodeProtocol)
	}
	a := answer{header: http.Header{}, status: http.StatusOK}
	id := idOf(r)
	if r.Method != http.MethodGet || r.URL.Path != "/event/connect" || id == "" {
		c.service.api.ServeHTTP(&a, r)
		return c.answer(number, &a)
	}
	resumes := slices.ContainsFunc(f.RegularFields(), func(h hpack.HeaderField) bool { return h.Name == "last-event-id" && h.Value != "" })
	s, err := c.service.enter(id, resumes, c, number)
	if err != nil {
		http.Error(&a, err.Error(), http.StatusConflict)
		return c.answer(number, &a)
	}
	if !c.admit(s) {
		c.service.leave(s, "refused")
		return refuse(http2.ErrCodeRefusedStream)
	}
	// The head goes out before anything falls due.
	if err := c.head(number, http.StatusOK, "text/event-stream", false); err != nil {
		c.service.leave(s, "client")
		return err
	}
	c.add(s)
	return nil
}

// admit takes a stream in unless there are as many as the client was told.
func (c *connection) admit(s *stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= int(c.service.StreamsPerConnection) {
		return false
	}
	s.window = c.initialWindow
	c.open[s.number] = s
	return true
}

// answer sends what the routes answered. The body has a goroutine, as the reader has to go on to see windows grow.
func (c *connection) answer(number uint32, a *answer) error {
	body := a.body.Bytes()
	s := &stream{connection: c, number: number, device: &device{}}
	if !c.admit(s) {
		return c.put(func(out *http2.Framer) error { return out.WriteRSTStream(number, http2.ErrCodeRefusedStream) })
	}
	err := c.head(number, a.status, a.header.Get("Content-Type"), len(body) == 0)
	if err != nil || len(body) == 0 {
		c.mu.Lock()
		delete(c.open, number)
		c.mu.Unlock()
		return err
	}
	go func() {
		for len(body) > 0 {
			n := c.reserve(s, min(len(body), mostData))
			if n == 0 || c.send(appendData(nil, number, body[:n], n == len(body))) != nil {
				return
			}
			body = body[n:]
		}
		c.mu.Lock()
		delete(c.open, number)
		c.mu.Unlock()
	}()
	return nil
}

// reserve waits until some of so many bytes fit into the windows, and takes that; 0 where the stream is over.
func (c *connection) reserve(s *stream, most int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over && !s.over && min(c.window, s.window) <= 0 {
		c.changed.Wait()
	}
	if c.over || s.over {
		return 0
	}
	n := min(most, c.window, s.window)
	c.window, s.window = c.window-n, s.window-n
	return n
}

// head writes the head of an answer. Every field goes without the dynamic table, so that nothing is kept between answers.
func (c *connection) head(number uint32, status int, contentType string, end bool) error {
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	_ = fields.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status), Sensitive: true})
	if contentType != "" {
		_ = fields.WriteField(hpack.HeaderField{Name: "content-type", Value: contentType, Sensitive: true})
	}
	return c.put(func(out *http2.Framer) error {
		return out.WriteHeaders(http2.HeadersFrameParam{StreamID: number, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
	})
}

// appendData writes a DATA frame.
func appendData(out []byte, stream uint32, data []byte, end bool) []byte {
	var flags http2.Flags
	if end {
		flags = http2.FlagDataEndStream
	}
	n := len(data)
	out = append(out, byte(n>>16), byte(n>>8), byte(n), byte(http2.FrameData), byte(flags),
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
	return append(out, data...)
}

// An answer is what a route wrote.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
