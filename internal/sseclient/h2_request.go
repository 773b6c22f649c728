package sseclient

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// ask sends a request on the connection, of which the caller has reserved a place, and waits for the head of the response
// until ctx ends. It fills in the answer.
func (c *h2Conn) ask(ctx context.Context, req *request, a *Response) error {
	st, err := c.begin(req)
	if err != nil {
		return err
	}
	p := st.pipe
	a.conn = p
	if err := p.send(ctx, req.body); err != nil {
		_ = p.Close()
		return err
	}
	for {
		head, err := p.answer()
		if head != nil {
			a.Status, a.Header, a.At, a.Proto = head.status, head.header, head.at, "HTTP/2.0"
			a.frame = h2Framing(req.method, head)
			return nil
		}
		if err == nil {
			err = p.await(ctx)
		}
		if err != nil {
			_ = p.Close()
			if err == context.DeadlineExceeded {
				c.doubt()
			}
			return err
		}
	}
}

// h2Framing returns the length of the body by the head; without one, END_STREAM is the end.
func h2Framing(method string, head *h2Head) framing {
	if length, err := strconv.ParseUint(head.header.Get("Content-Length"), 10, 63); err == nil &&
		method != http.MethodHead && head.status != http.StatusNoContent && head.status != http.StatusNotModified {
		return framing{kind: contentLength, remain: length}
	}
	return framing{kind: untilClose}
}

// begin makes a stream of a place, and sends its request but for the body.
func (c *h2Conn) begin(req *request) (*h2Stream, error) {
	e := requestEncoders.Get().(*requestEncoder) // only these are put there
	defer requestEncoders.Put(e)
	httpReq := req.httpRequest(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places--
	if !c.usable() {
		c.left()
		return nil, c.unprocessed()
	}
	st := &h2Stream{conn: c, id: c.next}
	st.pipe = newH2Pipe(st)
	st.pipe.window = c.initial
	c.next += 2
	c.streams = append(c.streams, st) // no number is higher
	c.encode(httpReq, req.body)
	c.sendBlock(st.id, req.body == "")
	c.flush()
	return st, nil
}

// unprocessed is why a connection takes no request any more. The caller holds mu.
func (c *h2Conn) unprocessed() error {
	if why := cmp.Or(c.goAwayErr, c.failed, c.broken); why != nil {
		return fmt.Errorf("%w: %w", errUnprocessed, why)
	}
	return errUnprocessed // it has no number left, or was closed for want of streams
}

// notInH2 are fields of a request that speak of its connection (RFC 9113, section 8.2.2).
var notInH2 = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "Host"}

// ofOneStream are fields that differ from stream to stream, or that must not be guessed from the size of others.
var ofOneStream = []string{":path", "authorization", "cookie", "last-event-id"}

// encode makes the header list of a request (section 8.3.1). The caller holds mu.
func (c *h2Conn) encode(r *http.Request, body string) {
	c.block.Reset()
	field := func(name, value string) {
		single := slices.Contains(ofOneStream, name)                                            // not to be kept by either side
		_ = c.fields.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: single}) // to a buffer: it has no error
	}
	field(":method", r.Method)
	field(":scheme", r.URL.Scheme)
	field(":authority", r.Host)
	field(":path", r.URL.RequestURI())
	for name, values := range r.Header {
		if slices.Contains(notInH2, name) || name == "User-Agent" && values[0] == "" {
			continue
		}
		for _, value := range values {
			field(strings.ToLower(name), value)
		}
	}
	if body != "" || slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, r.Method) {
		field("content-length", strconv.Itoa(len(body)))
	}
}

// sendBlock sends the header list, in as many frames as it takes. The caller holds mu.
func (c *h2Conn) sendBlock(id uint32, last bool) {
	for first := true; first || c.block.Len() > 0; first = false {
		part := c.block.Next(int(c.frame))
		complete := c.block.Len() == 0
		if first {
			_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part, EndStream: last, EndHeaders: complete})
		} else {
			_ = c.framer.WriteContinuation(id, complete, part)
		}
	}
}

// send sends the body of the request, as fast as the server's windows let it. It returns early where the server has ended
// the stream.
func (p *h2Pipe) send(ctx context.Context, body string) error {
	for body != "" {
		n := p.sendSome(body)
		if n < 0 {
			return nil
		}
		if body = body[n:]; n == 0 {
			if err := p.await(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendSome sends as much as it may; below 0 means that the body is not wanted.
func (p *h2Pipe) sendSome(body string) int {
	c := p.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.st.closed {
		return -1
	}
	n := min(int64(len(body)), c.window, p.window, int64(c.frame))
	if n <= 0 {
		return 0
	}
	c.window, p.window = c.window-n, p.window-n
	_ = c.framer.WriteData(p.st.id, int(n) == len(body), []byte(body[:n]))
	c.flush()
	return int(n)
}

// answer is the head of the response if it has come, or how the stream ended without one.
func (p *h2Pipe) answer() (*h2Head, error) {
	p.st.conn.mu.Lock()
	defer p.st.conn.mu.Unlock()
	err := p.st.err
	switch {
	case err == io.EOF:
		err = fmt.Errorf("the server ended the stream without a response: %w", io.ErrUnexpectedEOF)
	case err == nil && p.st.closed:
		err = net.ErrClosed
	}
	return p.head, err
}

// await waits until something about the stream has changed.
func (p *h2Pipe) await(ctx context.Context) error {
	select {
	case <-p.changed:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // its caller says of what
	}
}
