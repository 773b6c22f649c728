package sseclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// A framing determines where a response's body ends (RFC 9112, section 6.3).
type framing struct {
	remain uint64 // bytes of the content length, or of the current chunk; while its size is read, the size so far
	skip   uint16 // bytes of extension or trailer skipped so far
	state  chunkState
	kind   frameKind
	ended  bool // the body has
	excess bool // bytes follow the body
}

type frameKind uint8

const (
	untilClose frameKind = iota
	contentLength
	chunked
)

func framingOf(resp *http.Response) framing {
	switch {
	case resp.Request.Method == http.MethodHead:
		return framing{kind: contentLength}
	case len(resp.TransferEncoding) > 0: // net/http accepts none but chunked
		return framing{kind: chunked}
	case resp.ContentLength >= 0:
		return framing{kind: contentLength, remain: uint64(resp.ContentLength)}
	default:
		return framing{kind: untilClose}
	}
}

// body reads a response's body from its connection, without a buffer of its own:
// chunks are unwrapped in place, in the caller's buffer. For one goroutine.
type body struct {
	idleMark
	left *leftover  // nil once it was read
	at   *time.Time // when the last bytes arrived: its reader's; nil where that does not ask
	pack *unpacking // nil: the body is as it is
	framing
}

// leftover is what was read with the head.
type leftover struct {
	data []byte
	at   time.Time
}

// begin readies the body of an answer, on a wire.
func (b *body) begin(r *Response, t transport) {
	b.end()
	b.transport, b.framing = t, r.frame
	if len(r.left) > 0 {
		b.left = &leftover{r.left, r.At}
	}
}

// end lets all of it go but how long the server may be silent, which may be changed at any time.
func (b *body) end() {
	b.transport, b.left, b.at, b.pack, b.framing = nil, nil, nil, nil, framing{}
	b.interrupted.Store(false)
}

var (
	errHalfBody   = fmt.Errorf("the connection ended before the response's content-length: %w", io.ErrUnexpectedEOF)
	errHalfRecord = fmt.Errorf("the connection ended inside a TLS record: %w", io.ErrUnexpectedEOF)
	errHalfChunk  = fmt.Errorf("the connection ended before the last chunk: %w", io.ErrUnexpectedEOF)
)

// Read returns io.EOF at the end the framing announced, an error wrapping
// io.ErrUnexpectedEOF where the connection ended before, and errIdle.
func (b *body) Read(p []byte) (int, error) {
	if b.kind == contentLength && b.remain == 0 {
		b.ended = true
	}
	for !b.ended {
		n, err := b.readSome(p)
		if n > 0 {
			if n, err = b.unwrap(p[:n]); n > 0 || err != nil {
				return n, err
			}
			continue
		}
		if err != nil {
			return 0, b.cut(err)
		}
	}
	return 0, io.EOF
}

// readSome takes what came with the head, then reads from the connection.
func (b *body) readSome(p []byte) (int, error) {
	if b.left != nil {
		n := copy(p, b.left.data)
		b.came(b.left.at)
		if b.left.data = b.left.data[n:]; len(b.left.data) == 0 {
			b.left = nil
		}
		return n, nil
	}
	for {
		n, err := b.transport.Read(p)
		if n == 0 && err != nil {
			n, err = b.goOn(p, err)
		}
		if n > 0 {
			now := time.Now()
			b.came(now)
			b.touch(now)
			return n, nil // an error comes again
		}
		if err != nil {
			return 0, err
		}
	}
}

// came tells the reader when bytes arrived.
func (b *body) came(at time.Time) {
	if b.at != nil {
		*b.at = at
	}
}

// lastChance is for a read that finds what waits in the socket, and nothing else.
const lastChance = 50 * time.Millisecond

// goOn judges an error of the connection: nil where it was the sweep that interrupted the
// read of a server that is not silent. A process that did not run for a while, as after
// SIGSTOP, finds everything silent, and has to read first what waits in the socket.
func (b *body) goOn(p []byte, err error) (int, error) {
	if !b.interrupted.Load() || err != errNotReady && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	now := time.Since(processStart)
	if st, ok := b.transport.(*h2Stream); ok {
		now = st.conn.readAt // its turn may come before that of the connection
	}
	silent := b.silent(now)
	if err == errNotReady { // it has just been read
		if silent {
			return 0, errIdle
		}
		b.resume()
		return 0, err
	}
	n := 0
	if err = nil; silent {
		b.transport.resume(time.Now().Add(lastChance))
		if n, err = b.transport.Read(p); errors.Is(err, os.ErrDeadlineExceeded) {
			err = errIdle
		}
	}
	b.resume()
	return n, err
}

// watch has the stream end with errIdle once the server was silent for its timeout, which may change
// while it is watched. It was last heard at some time. The caller calls unwatch when it has read the last, of
// any stream.
func (b *body) watch(at time.Time) {
	if b.limit() > 0 {
		processSweep.watch(&b.idleMark, at)
	}
}

func (b *body) unwatch() {
	processSweep.forget(&b.idleMark)
	if b.pack != nil {
		b.pack.stop()
	}
}

// unpacked is the body without its content coding, until unwatch.
func (b *body) unpacked(r *Response) io.Reader {
	packed := r.Coding()
	if packed == "" {
		return b
	}
	b.pack = unpack(packed, b)
	return b.pack
}

// unwrap turns n raw bytes into bytes of the body, in place.
func (b *body) unwrap(p []byte) (int, error) {
	switch b.kind {
	case chunked:
		n, done, err := b.dechunk(p)
		b.ended = done
		return n, err
	case contentLength:
		n := int(min(uint64(len(p)), b.remain)) // #nosec G115 -- at most len(p)
		b.remain -= uint64(n)
		b.excess = n < len(p)
		return n, nil
	default:
		return len(p), nil
	}
}

// cut names the end of a connection before the end of the body.
func (b *body) cut(err error) error {
	if err == errNotReady { // mostly: it has not ended
		return err
	}
	if err == io.ErrUnexpectedEOF { // no connection says so but one of crypto/tls
		return errHalfRecord
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	switch b.kind {
	case chunked:
		return errHalfChunk
	case contentLength:
		return errHalfBody
	default:
		return io.EOF
	}
}
