package sseclient

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// h2Error is what a server does that HTTP/2 forbids, to the connection (RFC 9113, section 5.4.1).
type h2Error struct {
	code http2.ErrCode
	err  error
}

func (e *h2Error) Error() string {
	return fmt.Sprintf("the server broke HTTP/2 (%v): %v", e.code, e.err)
}

func (e *h2Error) Unwrap() error { return e.err }

func broke(code http2.ErrCode, format string, args ...any) *h2Error {
	return &h2Error{code, fmt.Errorf(format, args...)}
}

const (
	h2FrameHeader = 9
	// h2MaxBlock bounds a header list as it comes, in HEADERS and all its CONTINUATIONs.
	h2MaxBlock = 2 * http1.MaxHead
)

// h2Cursor is where the reader of a connection is among its frames. What comes in DATA is handed on as it comes; any
// other frame is kept until it is whole, a header list until its last part has come.
type h2Cursor struct {
	head [h2FrameHeader]byte
	have int // bytes of the header
	http2.FrameHeader
	left   uint32 // bytes of the payload to come
	pad    uint32 // of these, the last ones are padding
	padded bool   // the length of the padding has not come yet
	to     *h2Stream

	whole  bytes.Buffer // frames that are no DATA, as they came
	expect uint32       // the stream whose CONTINUATION has to follow; 0: none
	framer *http2.Framer
}

func (r *h2Cursor) begin() {
	r.framer = http2.NewFramer(nil, &r.whole)
	r.framer.SetMaxReadFrameSize(h2MaxFrame)
	r.framer.MaxHeaderListSize = http1.MaxHead
	r.framer.ReadMetaHeaders = hpack.NewDecoder(h2Table, nil)
}

// take goes through what has come. Its error ends the connection.
func (r *h2Cursor) take(c *h2Conn, p, buf []byte, b *eventstream.Block) error {
	for len(p) > 0 {
		if r.have < h2FrameHeader {
			n := copy(r.head[r.have:], p)
			r.have, p = r.have+n, p[n:]
			if r.have < h2FrameHeader {
				break
			}
			if err := r.open(c); err != nil {
				return err
			}
		}
		n := min(len(p), int(r.left))
		part := p[:n]
		r.left, p = r.left-uint32(n), p[n:] // #nosec G115 -- at most r.left
		if r.Type == http2.FrameData {
			r.data(c, part, buf, b)
		} else {
			_, _ = r.whole.Write(part)
		}
		if r.left > 0 {
			break
		}
		r.have = 0
		if err := r.shut(c, buf, b); err != nil {
			return err
		}
	}
	return nil
}

// open begins a frame whose header has come.
func (r *h2Cursor) open(c *h2Conn) error {
	h := r.head[:]
	r.FrameHeader = http2.FrameHeader{
		Length: uint32(h[0])<<16 | uint32(h[1])<<8 | uint32(h[2]), Type: http2.FrameType(h[3]), Flags: http2.Flags(h[4]),
		StreamID: binary.BigEndian.Uint32(h[5:]) & (1<<31 - 1),
	}
	r.left, r.pad, r.padded, r.to = r.Length, 0, false, nil
	hasSettings := c.isSettled()
	switch {
	case !hasSettings && string(h[:5]) == "HTTP/":
		return errNotH2
	case !hasSettings && (r.Type != http2.FrameSettings || r.Flags.Has(http2.FlagSettingsAck)):
		return broke(http2.ErrCodeProtocol, "it did not begin with SETTINGS, but with %v", r.Type)
	case r.Length > h2MaxFrame:
		return broke(http2.ErrCodeFrameSize, "a %v frame of %d bytes, over the %d that are allowed", r.Type, r.Length, h2MaxFrame)
	case r.expect != 0 && (r.Type != http2.FrameContinuation || r.StreamID != r.expect):
		return broke(http2.ErrCodeProtocol, "%v of stream %d where CONTINUATION of stream %d had to follow", r.Type, r.StreamID, r.expect)
	case r.whole.Len()+int(r.Length) > h2MaxBlock:
		return broke(http2.ErrCodeEnhanceYourCalm, "%w", errHeaderTooLong)
	case r.Type == http2.FrameData:
		return r.openData(c)
	}
	_, _ = r.whole.Write(h)
	return nil
}

var errNotH2 = errors.New("the server answered in HTTP/1.1: it does not speak HTTP/2 here")

// openData counts DATA towards the windows, padding and all (section 6.9.1), and finds its stream.
func (r *h2Cursor) openData(c *h2Conn) error {
	r.padded = r.Flags.Has(http2.FlagDataPadded)
	if r.padded && r.Length == 0 {
		return broke(http2.ErrCodeFrameSize, "DATA with padding whose length is missing")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isKnown(r.StreamID) {
		return broke(http2.ErrCodeProtocol, "DATA of stream %d, which this client has not begun", r.StreamID)
	}
	if c.unread += int32(r.Length); c.unread > h2ConnWindow { // #nosec G115 -- a frame has 24 bits of length
		return broke(http2.ErrCodeFlowControl, "more DATA than the window of the connection holds")
	}
	if c.unread >= h2ConnWindow/2 {
		_ = c.framer.WriteWindowUpdate(0, uint32(c.unread))
		c.unread = 0
	}
	st := c.streams.get(r.StreamID)
	if st == nil {
		return nil // it was closed here: what was on its way is let go
	}
	switch st.unread += int32(r.Length); { // #nosec G115 -- a frame has 24 bits of length
	case !st.answered:
		st.refuse(broke(http2.ErrCodeProtocol, "DATA before HEADERS"))
	case st.unread > h2Window:
		st.refuse(broke(http2.ErrCodeFlowControl, "more DATA than the window of the stream holds"))
	default:
		r.to = st
	}
	return nil
}

// data hands on a part of DATA.
func (r *h2Cursor) data(c *h2Conn, part, buf []byte, b *eventstream.Block) {
	unseen := 0
	if r.padded && len(part) > 0 {
		r.pad, r.padded = uint32(part[0]), false
		part, unseen = part[1:], 1
	}
	// Of what has come and is to come the last bytes are padding.
	if content := int(int64(len(part)) + int64(r.left) - int64(r.pad)); content < len(part) {
		unseen += len(part) - max(content, 0)
		part = part[:max(content, 0)]
	}
	if r.to != nil {
		r.to.bring(part, unseen, buf, b)
	}
}

// shut is called when a frame is whole.
func (r *h2Cursor) shut(c *h2Conn, buf []byte, b *eventstream.Block) error {
	if r.Type == http2.FrameData {
		if r.pad > 0 && r.pad >= r.Length {
			return broke(http2.ErrCodeProtocol, "DATA with more padding than the frame is long")
		}
		if r.to != nil && r.Flags.Has(http2.FlagDataEndStream) {
			c.mu.Lock()
			r.to.end(io.EOF)
			c.mu.Unlock()
			r.to.turn(buf, b)
		}
		r.to = nil
		return nil
	}
	if r.Type == http2.FrameHeaders || r.Type == http2.FrameContinuation && r.expect != 0 {
		r.expect = 0
		if !r.Flags.Has(http2.FlagHeadersEndHeaders) {
			r.expect = r.StreamID
			return nil
		}
	}
	f, err := r.framer.ReadFrame()
	emptied(&r.whole)
	if err != nil {
		return r.wrong(c, err)
	}
	return c.handle(f, buf, b)
}

// wrong judges a frame that the Framer refuses: an error of its stream, or of the connection.
func (r *h2Cursor) wrong(c *h2Conn, err error) error {
	detail := r.framer.ErrorDetail()
	if one := (http2.StreamError{}); errors.As(err, &one) {
		if detail == nil {
			detail = one.Cause
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		switch st := c.streams.get(one.StreamID); {
		case st != nil:
			st.refuse(broke(one.Code, "%v: %w", r.Type, detail))
		case !c.isKnown(one.StreamID):
			return broke(one.Code, "%v: %w", r.Type, detail)
		}
		return nil
	}
	code := http2.ErrCodeProtocol
	if connErr := http2.ConnectionError(0); errors.As(err, &connErr) {
		code = http2.ErrCode(connErr)
	}
	if detail == nil {
		detail = err
	}
	return broke(code, "%v: %w", r.Type, detail)
}

func (c *h2Conn) isSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasSettings
}

// isKnown reports whether a stream is one of this client's, open or closed. The caller holds mu.
func (c *h2Conn) isKnown(id uint32) bool { return id%2 == 1 && id < c.next }
