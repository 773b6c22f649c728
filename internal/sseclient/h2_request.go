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

// sendRequest sends a request with a reservation of the caller, awaits the response header, and stores it in resp.
func (c *h2Conn) sendRequest(ctx context.Context, req *request, resp *Response) error {
	st, err := c.begin(req)
	if err != nil {
		return err
	}
	p := st.pipe
	resp.conn = p
	if err := p.send(ctx, req.body); err != nil {
		_ = p.Close()
		return err
	}
	for {
		head, err := p.response()
		if head != nil {
			resp.Status, resp.Proto, resp.Header, resp.At = head.Status, head.Proto, head.Header, head.At
			resp.frame = h2Framing(req.method, head)
			return nil
		}
		if err == nil {
			err = p.await(ctx)
		}
		if err != nil {
			_ = p.Close()
			if err == context.DeadlineExceeded {
				c.suspect()
			}
			return err
		}
	}
}

// errLongBody is the error for a response over HTTP/2 that exceeds its content-length (RFC 9113, section 8.1.1).
var errLongBody = protocolError(http2.ErrCodeProtocol, "the response is longer than its content-length")

// h2Framing returns the framing of a response over HTTP/2.
func h2Framing(method string, head *Response) framing {
	if length, err := strconv.ParseUint(head.Header.Get("Content-Length"), 10, 63); err == nil &&
		method != http.MethodHead && head.Status != http.StatusNoContent && head.Status != http.StatusNotModified {
		return framing{kind: endStream, remaining: length}
	}
	return framing{kind: untilClose}
}

// begin opens a stream with a reservation of the caller, and sends the request without its body.
func (c *h2Conn) begin(req *request) (*h2Stream, error) {
	e := requestEncoders.Get().(*requestEncoder)
	defer requestEncoders.Put(e)
	httpReq := req.httpRequest(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reservations--
	if !c.canOpen() {
		c.retireIfUnused()
		return nil, c.unprocessed()
	}
	st := &h2Stream{conn: c, id: c.nextID}
	st.pipe = newH2Pipe(st)
	st.pipe.window = c.initialWindow
	c.nextID += 2
	c.streams = append(c.streams, st) // still sorted: st has the highest id
	c.encode(httpReq, req.body)
	c.sendBlock(st.id, req.body == "")
	c.flush()
	return st, nil
}

// unprocessed returns the error for a connection that accepts no further request. The caller holds mu.
func (c *h2Conn) unprocessed() error {
	if cause := cmp.Or(c.goAwayErr, c.endErr, c.writeErr); cause != nil {
		return fmt.Errorf("%w: %w", errUnprocessed, cause)
	}
	return errUnprocessed // the connection is retired or has used all ids
}

// unsentFields are header fields about the connection, which HTTP/2 forbids (RFC 9113, section 8.2.2), and fields that
// net/http replaces over HTTP/1.1.
var unsentFields = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Trailer",
}

// sensitiveFields are header fields that differ between streams or are secret. The compression table must omit them.
var sensitiveFields = []string{":path", "authorization", "cookie", "last-event-id"}

// encode encodes the header list of a request (section 8.3.1). The caller holds mu.
func (c *h2Conn) encode(r *http.Request, body string) {
	c.headerBlock.Reset()
	field := func(name, value string) {
		sensitive := slices.Contains(sensitiveFields, name)
		// Writing to a buffer does not fail.
		_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: sensitive})
	}
	field(":method", r.Method)
	field(":scheme", r.URL.Scheme)
	field(":authority", r.Host)
	field(":path", r.URL.RequestURI())
	for name, values := range r.Header {
		if slices.Contains(unsentFields, name) || name == "User-Agent" && values[0] == "" {
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

// sendBlock sends the header list in one or more frames. last is set if no body follows. The caller holds mu.
func (c *h2Conn) sendBlock(id uint32, last bool) {
	for first := true; first || c.headerBlock.Len() > 0; first = false {
		part := c.headerBlock.Next(int(c.maxFrame))
		complete := c.headerBlock.Len() == 0
		if first {
			_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part, EndStream: last, EndHeaders: complete})
		} else {
			_ = c.framer.WriteContinuation(id, complete, part)
		}
	}
}

// send sends the body of the request as the windows of the server allow. It returns early if the stream has ended.
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

// sendSome sends as much as the windows allow and returns the number of bytes, or -1 if the stream has ended.
func (p *h2Pipe) sendSome(body string) int {
	c := p.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.st.isClosed {
		return -1
	}
	n := min(int64(len(body)), c.window, p.window, int64(c.maxFrame))
	if n <= 0 {
		return 0
	}
	c.window, p.window = c.window-n, p.window-n
	_ = c.framer.WriteData(p.st.id, int(n) == len(body), []byte(body[:n]))
	c.flush()
	return int(n)
}

// response returns the header of the response if it has arrived, and an error if the stream has ended.
func (p *h2Pipe) response() (*Response, error) {
	p.st.conn.mu.Lock()
	defer p.st.conn.mu.Unlock()
	err := p.st.err
	switch {
	case err == io.EOF:
		err = fmt.Errorf("the server ended the stream without a response: %w", io.ErrUnexpectedEOF)
	case err == nil && p.st.isClosed:
		err = net.ErrClosed
	}
	return p.head, err
}

func (p *h2Pipe) await(ctx context.Context) error {
	select {
	case <-p.change:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
