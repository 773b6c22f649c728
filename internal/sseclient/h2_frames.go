package sseclient

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// An h2Error is a violation of HTTP/2 by the server (RFC 9113, section 5.4), or of a limit of this client.
type h2Error struct {
	code http2.ErrCode
	err  error
}

func (e *h2Error) Error() string {
	if e.code == http2.ErrCodeEnhanceYourCalm { // HTTP/2 itself has no limit
		return e.err.Error()
	}
	return fmt.Sprintf("the server violated HTTP/2 (%v): %v", e.code, e.err)
}

func (e *h2Error) Unwrap() error { return e.err }

func protocolError(code http2.ErrCode, format string, args ...any) *h2Error {
	return &h2Error{code, fmt.Errorf(format, args...)}
}

const (
	h2FrameHeader = 9
	// h2MaxBlock is the maximum size in bytes of an encoded header list, in HEADERS and all its CONTINUATION frames.
	h2MaxBlock = 2 * http1.MaxHead
)

// An h2Cursor is the position of the reader of a connection within a frame. It passes the content of DATA to the stream
// as it arrives. It buffers any other frame until the frame is complete, and a header list until its last frame.
type h2Cursor struct {
	head    [h2FrameHeader]byte
	headLen int // bytes of the header that have arrived
	http2.FrameHeader
	remaining        uint32    // bytes of the payload that have not arrived
	padding          uint32    // bytes of padding at the end of the payload
	padLengthPending bool      // the next byte of the payload is the length of the padding
	stream           *h2Stream // receives the content of DATA; nil: the content is discarded

	frames       bytes.Buffer  // the current frame other than DATA, and the earlier frames of its header list
	continuation uint32        // the stream whose CONTINUATION must follow; 0: none
	framer       *http2.Framer // parses frames
}

func (r *h2Cursor) begin() {
	r.framer = http2.NewFramer(nil, &r.frames)
	r.framer.SetMaxReadFrameSize(h2MaxFrame)
	r.framer.MaxHeaderListSize = http1.MaxHead
	r.framer.ReadMetaHeaders = hpack.NewDecoder(h2Table, nil)
}

// read processes bytes of the connection. The readers of streams use buf and b. An error ends the connection.
func (r *h2Cursor) read(c *h2Conn, p, buf []byte, b *eventstream.Block) error {
	for len(p) > 0 {
		if r.headLen < h2FrameHeader {
			n := copy(r.head[r.headLen:], p)
			r.headLen, p = r.headLen+n, p[n:]
			if r.headLen < h2FrameHeader {
				break
			}
			if err := r.beginFrame(c); err != nil {
				return err
			}
		}
		n := min(len(p), int(r.remaining))
		part := p[:n]
		r.remaining, p = r.remaining-uint32(n), p[n:] // #nosec G115 -- at most r.remaining
		if r.Type == http2.FrameData {
			r.data(part, buf, b)
		} else {
			_, _ = r.frames.Write(part)
		}
		if r.remaining > 0 {
			break
		}
		r.headLen = 0
		if err := r.endFrame(c, buf, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *h2Cursor) beginFrame(c *h2Conn) error {
	h := r.head[:]
	r.FrameHeader = http2.FrameHeader{
		Length: uint32(h[0])<<16 | uint32(h[1])<<8 | uint32(h[2]), Type: http2.FrameType(h[3]), Flags: http2.Flags(h[4]),
		StreamID: binary.BigEndian.Uint32(h[5:]) & (1<<31 - 1),
	}
	r.remaining, r.padding, r.padLengthPending, r.stream = r.Length, 0, false, nil
	switch {
	case !c.hasSettings && string(h[:5]) == "HTTP/":
		return errHTTP1Response
	case !c.hasSettings && r.Type != http2.FrameSettings:
		return protocolError(http2.ErrCodeProtocol, "its first frame is %v, not SETTINGS", r.Type)
	case !c.hasSettings && r.Flags.Has(http2.FlagSettingsAck):
		return protocolError(http2.ErrCodeProtocol, "its first frame acknowledges SETTINGS, but its own SETTINGS must be first")
	case r.Length > h2MaxFrame:
		return protocolError(http2.ErrCodeFrameSize, "%v of %d bytes exceeds the limit of %d",
			r.Type, r.Length, h2MaxFrame)
	case r.continuation != 0 && (r.Type != http2.FrameContinuation || r.StreamID != r.continuation):
		return protocolError(http2.ErrCodeProtocol, "%v of stream %d instead of CONTINUATION of stream %d",
			r.Type, r.StreamID, r.continuation)
	case r.frames.Len()+int(r.Length) > h2MaxBlock:
		return r.refuseHeader(c)
	case r.Type == http2.FrameData:
		return r.beginData(c)
	}
	_, _ = r.frames.Write(h)
	return nil
}

// refuseHeader ends the stream whose header list is too long, and returns the error that ends the connection. Without
// the rest of the list, later lists cannot be decoded (RFC 9113, section 4.3).
func (r *h2Cursor) refuseHeader(c *h2Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st := c.streams.get(r.StreamID); st != nil {
		st.end(errHeaderTooLong)
		c.nudge(st)
	}
	return protocolError(http2.ErrCodeEnhanceYourCalm,
		"this client closed the connection, because the response header of stream %d on it exceeds %d bytes",
		r.StreamID, h2MaxBlock)
}

var errHTTP1Response = errors.New("the server responded with HTTP/1.1 and does not support HTTP/2 without TLS")

// beginData finds the stream of DATA, and subtracts DATA with its padding from the windows (section 6.9.1). It enlarges
// the window of the connection when half of it is used.
func (r *h2Cursor) beginData(c *h2Conn) error {
	r.padLengthPending = r.Flags.Has(http2.FlagDataPadded)
	if r.padLengthPending && r.Length == 0 {
		return protocolError(http2.ErrCodeFrameSize, "DATA without the length of its padding")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isKnown(r.StreamID) {
		return protocolError(http2.ErrCodeProtocol, "DATA of stream %d, which this client has not opened", r.StreamID)
	}
	if c.receivedBytes += int32(r.Length); c.receivedBytes > h2ConnWindow { // #nosec G115 -- a length has 24 bits
		return protocolError(http2.ErrCodeFlowControl, "DATA exceeds the window of the connection")
	}
	if c.receivedBytes >= h2ConnWindow/2 {
		_ = c.framer.WriteWindowUpdate(0, uint32(c.receivedBytes))
		c.receivedBytes = 0
	}
	st := c.streams.get(r.StreamID)
	if st == nil {
		return nil // this client has closed the stream
	}
	switch st.receivedBytes += int32(r.Length); { // #nosec G115 -- a length has 24 bits
	case !st.hasHead:
		st.refuse(protocolError(http2.ErrCodeProtocol, "DATA before HEADERS"))
	case st.receivedBytes > h2Window:
		st.refuse(protocolError(http2.ErrCodeFlowControl, "DATA exceeds the window of the stream"))
	default:
		r.stream = st
	}
	return nil
}

func (r *h2Cursor) data(part, buf []byte, b *eventstream.Block) {
	discarded := 0 // bytes of padding
	if r.padLengthPending && len(part) > 0 {
		r.padding, r.padLengthPending = uint32(part[0]), false
		part, discarded = part[1:], 1
	}
	// The padding is at the end of the frame, so it may start in this part.
	if content := int(int64(len(part)) + int64(r.remaining) - int64(r.padding)); content < len(part) {
		discarded += len(part) - max(content, 0)
		part = part[:max(content, 0)]
	}
	if r.stream != nil {
		r.stream.deliver(part, discarded, buf, b)
	}
}

func (r *h2Cursor) endFrame(c *h2Conn, buf []byte, b *eventstream.Block) error {
	if r.Type == http2.FrameData {
		if r.padding > 0 && r.padding >= r.Length {
			return protocolError(http2.ErrCodeProtocol, "the padding of DATA exceeds the frame")
		}
		if r.stream != nil && r.Flags.Has(http2.FlagDataEndStream) {
			c.mu.Lock()
			r.stream.end(io.EOF)
			c.mu.Unlock()
			r.stream.turn(buf, b)
		}
		r.stream = nil
		return nil
	}
	if r.Type == http2.FrameHeaders || r.Type == http2.FrameContinuation && r.continuation != 0 {
		r.continuation = 0
		if !r.Flags.Has(http2.FlagHeadersEndHeaders) {
			r.continuation = r.StreamID
			return nil
		}
	}
	f, err := r.framer.ReadFrame()
	resetBuffer(&r.frames)
	if err != nil {
		return r.frameError(c, err)
	}
	return c.handle(f, buf, b)
}

// frameError handles an invalid frame. It ends the stream, or returns an error that ends the connection.
func (r *h2Cursor) frameError(c *h2Conn, err error) error {
	detail := r.framer.ErrorDetail()
	if streamErr := (http2.StreamError{}); errors.As(err, &streamErr) {
		detail = cmp.Or(detail, streamErr.Cause, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		switch st := c.streams.get(streamErr.StreamID); {
		case st != nil:
			st.refuse(protocolError(streamErr.Code, "%v: %w", r.Type, detail))
		case !c.isKnown(streamErr.StreamID):
			return protocolError(streamErr.Code, "%v: %w", r.Type, detail)
		}
		return nil
	}
	code := http2.ErrCodeProtocol
	if connErr := http2.ConnectionError(0); errors.As(err, &connErr) {
		code = http2.ErrCode(connErr)
	}
	return protocolError(code, "%v: %w", r.Type, cmp.Or(detail, err))
}

// isKnown reports whether this client has opened a stream, which may already be closed. The caller holds mu.
func (c *h2Conn) isKnown(id uint32) bool { return id%2 == 1 && id < c.nextID }
