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
	remaining uint64 // bytes of the body or of the current chunk; while the size of a chunk is read, the size so far
	skip      uint16 // bytes of the current extension or trailer so far
	state     chunkState
	kind      frameKind
	done      bool // the body has
	excess    bool // bytes follow the body
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
		return framing{kind: contentLength, remaining: uint64(resp.ContentLength)}
	default:
		return framing{kind: untilClose}
	}
}

// A body reads the body of a response from its connection. It has no buffer: chunks are decoded in place, in the
// buffer of the caller. One goroutine uses it.
type body struct {
	idleMark
	leftover     *leftover     // nil after it was read
	arrival      *time.Time    // receives the arrival time of the last bytes; nil: not requested
	decompressor *decompressor // nil: the body has no content coding
	framing
}

// A leftover is the part of the body that was read with the head.
type leftover struct {
	data []byte
	at   time.Time
}

// begin prepares the body of a response for reading from t.
func (b *body) begin(r *Response, t transport) {
	b.end()
	b.transport, b.framing = t, r.frame
	if len(r.leftover) > 0 {
		b.leftover = &leftover{r.leftover, r.At}
	}
}

// end resets everything but the idle timeout, which any goroutine may change at any time.
func (b *body) end() {
	b.transport, b.leftover, b.arrival, b.decompressor, b.framing = nil, nil, nil, nil, framing{}
	b.interrupted.Store(false)
}

var (
	errTruncatedBody   = fmt.Errorf("the connection ended before the response's content-length: %w", io.ErrUnexpectedEOF)
	errTruncatedRecord = fmt.Errorf("the connection ended inside a TLS record: %w", io.ErrUnexpectedEOF)
	errTruncatedChunks = fmt.Errorf("the connection ended before the last chunk: %w", io.ErrUnexpectedEOF)
)

// Read returns io.EOF at the end of the body. Its error wraps io.ErrUnexpectedEOF if the connection ended before, and
// is errIdle if the server was silent for the idle timeout.
func (b *body) Read(p []byte) (int, error) {
	if b.kind == contentLength && b.remaining == 0 {
		b.done = true
	}
	for !b.done {
		n, err := b.readSome(p)
		if n > 0 {
			if n, err = b.unwrap(p[:n]); n > 0 || err != nil {
				return n, err
			}
			continue
		}
		if err != nil {
			return 0, b.endError(err)
		}
	}
	return 0, io.EOF
}

// readSome returns the bytes that were read with the head, and then reads from the connection.
func (b *body) readSome(p []byte) (int, error) {
	if b.leftover != nil {
		n := copy(p, b.leftover.data)
		b.noteArrival(b.leftover.at)
		if b.leftover.data = b.leftover.data[n:]; len(b.leftover.data) == 0 {
			b.leftover = nil
		}
		return n, nil
	}
	for {
		n, err := b.transport.Read(p)
		if n == 0 && err != nil {
			n, err = b.handleReadError(p, err)
		}
		if n > 0 {
			now := time.Now()
			b.noteArrival(now)
			b.touch(now)
			return n, nil // the next read returns the error again
		}
		if err != nil {
			return 0, err
		}
	}
}

// noteArrival reports the arrival time of bytes to the reader.
func (b *body) noteArrival(at time.Time) {
	if b.arrival != nil {
		*b.arrival = at
	}
}

// finalReadTimeout limits a read that is to find only bytes that have already arrived.
const finalReadTimeout = 50 * time.Millisecond

// handleReadError handles an error of a read. It returns no error if the sweep interrupted the read, but the server
// is not silent. After a pause of the process, as by SIGSTOP, all servers seem silent. Therefore it first reads bytes
// that have already arrived.
func (b *body) handleReadError(p []byte, err error) (int, error) {
	if !b.interrupted.Load() || err != errNotReady && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	now := time.Since(processStart)
	if st, ok := b.transport.(*h2Stream); ok {
		now = st.conn.readAt // the stream may have its turn before the connection has read
	}
	silent := b.silent(now)
	if err == errNotReady { // a polled transport has just read all bytes
		if silent {
			return 0, errIdle
		}
		b.resume()
		return 0, err
	}
	n := 0
	if err = nil; silent {
		b.transport.resume(time.Now().Add(finalReadTimeout))
		if n, err = b.transport.Read(p); errors.Is(err, os.ErrDeadlineExceeded) {
			err = errIdle
		}
	}
	b.resume()
	return n, err
}

// watch makes reads fail with errIdle when the server has been silent for the idle timeout, counted from at. The
// timeout may change meanwhile. The caller must call unwatch after the last read, even if there was no timeout.
func (b *body) watch(at time.Time) {
	if b.limit() > 0 {
		processSweep.watch(&b.idleMark, at)
	}
}

func (b *body) unwatch() {
	processSweep.forget(&b.idleMark)
	if b.decompressor != nil {
		b.decompressor.stop()
	}
}

// decoded returns a reader of the body without its content coding. It is valid until unwatch.
func (b *body) decoded(r *Response) io.Reader {
	codingName := r.Coding()
	if codingName == "" {
		return b
	}
	b.decompressor = newDecompressor(codingName, b)
	return b.decompressor
}

// unwrap removes the framing from raw bytes in place and returns the number of bytes of the body.
func (b *body) unwrap(p []byte) (int, error) {
	switch b.kind {
	case chunked:
		n, done, err := b.dechunk(p)
		b.done = done
		return n, err
	case contentLength:
		n := int(min(uint64(len(p)), b.remaining)) // #nosec G115 -- at most len(p)
		b.remaining -= uint64(n)
		b.excess = n < len(p)
		return n, nil
	default:
		return len(p), nil
	}
}

// endError returns the error for a connection that failed or ended before the end of the body.
func (b *body) endError(err error) error {
	if err == errNotReady { // the most frequent case
		return err
	}
	if err == io.ErrUnexpectedEOF { // only crypto/tls returns it
		return errTruncatedRecord
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	switch b.kind {
	case chunked:
		return errTruncatedChunks
	case contentLength:
		return errTruncatedBody
	default:
		return io.EOF
	}
}
