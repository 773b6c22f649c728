package sse

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// framing tells where a response's body ends (RFC 9112, section 6.3).
type framing struct {
	kind   frameKind
	ended  bool  // the body has; here it takes no room
	remain int64 // of the content length
	chunk  chunkDecoder
}

type frameKind uint8

const (
	untilClose frameKind = iota
	contentLength
	chunked
)

func framingOf(resp *http.Response) framing {
	switch {
	case len(resp.TransferEncoding) > 0: // net/http accepts none but chunked
		return framing{kind: chunked}
	case resp.ContentLength >= 0:
		return framing{kind: contentLength, remain: resp.ContentLength}
	default:
		return framing{kind: untilClose}
	}
}

// body reads a response's body from its connection, without a buffer of its own:
// chunks are unwrapped in place, in the caller's buffer. For one goroutine.
type body struct {
	wire wire
	left []byte    // read with the head
	at   time.Time // when the last bytes arrived
	idle idleMark
	pack *unpacking // nil: the body is as it is
	framing
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
	if len(b.left) > 0 {
		n := copy(p, b.left)
		if b.left = b.left[n:]; len(b.left) == 0 {
			b.left = nil
		}
		return n, nil
	}
	for {
		n, err := b.wire.Read(p)
		if n == 0 && err != nil {
			n, err = b.goOn(p, err)
		}
		if n > 0 {
			b.at = time.Now()
			b.idle.heard(b.at)
			return n, nil // an error comes again
		}
		if err != nil {
			return 0, err
		}
	}
}

// lastChance is for a read that finds what waits in the socket, and nothing else.
const lastChance = 50 * time.Millisecond

// goOn judges an error of the connection: nil where it was the sweep that interrupted the
// read of a server that is not silent. A process that did not run for a while, as after
// SIGSTOP, finds everything silent, and has to read first what waits in the socket.
//
//go:noinline // rare, and its frame would be part of every parked stream's stack
func (b *body) goOn(p []byte, err error) (int, error) {
	if b.idle.wire == nil || !b.idle.asked.Load() || err != errNotReady && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	now := time.Since(processStart)
	if st, ok := b.idle.wire.(*h2Stream); ok {
		now = st.conn.readAt // its turn may come before that of the connection
	}
	silent := b.idle.silent(now)
	if err == errNotReady { // it has just been read
		if silent {
			return 0, errIdle
		}
		b.idle.resume()
		return 0, err
	}
	n := 0
	if err = nil; silent {
		b.wire.resume(time.Now().Add(lastChance))
		if n, err = b.wire.Read(p); errors.Is(err, os.ErrDeadlineExceeded) {
			err = errIdle
		}
	}
	b.idle.resume()
	return n, err
}

// watch has the stream end with errIdle once the server was silent for timeout, which may change
// while it is watched; 0 is for ever. The caller calls unwatch when it has read the last, of any stream.
func (b *body) watch(timeout *atomic.Int64) {
	if timeout.Load() > 0 {
		b.idle.wire, b.idle.timeout = b.wire, timeout
		processSweep.watch(&b.idle, b.at)
	}
}

func (b *body) unwatch() {
	if b.idle.wire != nil {
		processSweep.forget(&b.idle)
	}
	if b.pack != nil {
		b.pack.stop()
	}
}

// unpacked is the body without its content coding, until unwatch.
func (b *body) unpacked(a *answer) io.Reader {
	packed := a.coding()
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
		n, done, err := b.chunk.decode(p)
		b.ended = done
		return n, err
	case contentLength:
		n := int(min(int64(len(p)), b.remain))
		b.remain -= int64(n)
		return n, nil
	default:
		return len(p), nil
	}
}

// cut names the end of a connection before the end of the body.
func (b *body) cut(err error) error {
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
