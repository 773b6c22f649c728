package sseclient

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// read reads a stream to its end. It is the goroutine of a stream without a poller.
func (s *Stream) read() {
	var b eventstream.Block
	s.body.arrival = &b.At
	for {
		if err := s.next(&b); err != nil {
			s.finishStream(err)
			return
		}
		s.dispatch(b.At, &b.Event)
	}
}

// next reads up to the next event. If the callback Block is set, next also reports the blocks and comments that it
// reads.
func (s *Stream) next(b *eventstream.Block) error {
	if s.callbacks.Block == nil {
		return s.parser.Next(&b.Event)
	}
	for {
		part, err := s.parser.NextPart(b)
		switch {
		case err != nil:
			return err
		case part == eventstream.CommentLine:
			report(s, s.callbacks.Comment, b.At, b.Comment)
			continue
		}
		report(s, s.callbacks.Block, b.At, b)
		if b.HasData {
			return nil
		}
	}
}

// turn ends or cuts the stream if requested, or else reads the bytes that have arrived, with the caller's buffers.
func (s *Stream) turn(buf []byte, b *eventstream.Block) {
	if s.attention.Load() && s.attend(buf, b) {
		return
	}
	s.readStream(buf, b)
}

// attend ends or cuts the stream if requested. done reports whether the turn is over.
func (s *Stream) attend(buf []byte, b *eventstream.Block) (done bool) {
	stopped, c := s.isStopped()
	if stopped {
		if s.finishTurns.Load() == 0 || s.readStream(buf, b) && !s.needsTurn() {
			s.finishStream(net.ErrClosed)
		}
		return true
	}
	if c == nil || !c.done && hasEnded(s.body.transport) {
		return false
	}
	return s.turnShared(c, buf, b) || s.turnCut(c, buf, b)
}

// needsTurn reports whether a stream that is about to finish must read further bytes in the next turn, and counts that
// turn. For HTTP/2, readBeforeFinish has already read all bytes.
func (s *Stream) needsTurn() bool {
	p, ok := s.body.transport.(*polledConn)
	return ok && p.hasUnread() && s.finishTurns.Add(-1) > 0
}

// readStream reports the events that have arrived. It returns false if the stream has ended.
func (s *Stream) readStream(buf []byte, b *eventstream.Block) bool {
	s.parser.Borrow(buf, b)
	s.body.arrival = &b.At
	for {
		switch err := s.next(b); err {
		case nil:
			s.dispatch(b.At, &b.Event)
		case errNotReady:
			s.parser.Return()
			return true
		default:
			s.finishStream(err)
			return false
		}
	}
}

func (s *Stream) dispatch(at time.Time, e *eventstream.Event) {
	report(s, s.callbacks.Event, at, e)
	if s.awaitsEvent {
		s.offerEvent(e)
	}
}

// finishStream closes the connection or makes it idle, and reports err as the reason.
func (s *Stream) finishStream(err error) {
	s.body.unwatch()
	kind := s.release()
	if st, ok := s.body.transport.(*h2Stream); ok && errors.Is(err, errIdle) {
		st.conn.suspect()
	}
	if kind != 0 || !s.makeConnectionIdle(err) {
		s.body.transport.hangUp()
	}
	s.body.end()
	s.parser.Release()
	if kind != 0 {
		err = errCut
		if s.cuttable { // otherwise Drop or Vanish made the cut
			report(s, s.callbacks.Cut, time.Now(), kind)
		}
	}
	f := readFailure(err)
	if s.callbacks.FollowUp != nil {
		if f = s.endFollowUp(f); f == nil {
			return // the goroutine of the second request reports the end
		}
	}
	s.endAttempt(nil, f)
}

// A framing determines where a response's body ends (RFC 9112, section 6.3).
type framing struct {
	remaining    uint64 // unread bytes of the body or the chunk; within a chunk size, the value of its digits so far
	skippedBytes uint16 // bytes of the current extension or trailer so far
	state        chunkState
	kind         frameKind
	done         bool // the whole body was read
	excess       bool // bytes follow the body
}

// A frameKind is the mark of the end of a body.
type frameKind uint8

const (
	untilClose    frameKind = iota // the end of the connection, or END_STREAM of HTTP/2
	contentLength                  // the number of bytes
	endStream                      // END_STREAM of HTTP/2, after exactly the announced number of bytes
	chunked                        // the last chunk
)

func framingOf(resp *http.Response) framing {
	switch {
	case resp.Request.Method == http.MethodHead:
		return framing{kind: contentLength}
	case len(resp.TransferEncoding) > 0: // net/http accepts only chunked
		return framing{kind: chunked}
	case resp.ContentLength >= 0:
		return framing{kind: contentLength, remaining: uint64(resp.ContentLength)}
	default:
		return framing{kind: untilClose}
	}
}

// A body reads the body of a response from its connection. It decodes chunks in the buffer of the caller, and has no
// buffer of its own. Only one goroutine may use a body.
type body struct {
	idleMark
	leftover     *leftover     // nil: none, or already read
	arrival      *time.Time    // receives the arrival time of the last bytes; nil: not requested
	decompressor *decompressor // nil: the body has no content coding
	framing
}

// A leftover is the part of the body that was read with the header.
type leftover struct {
	data []byte
	at   time.Time // of the arrival
}

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
	b.isInterrupted.Store(false)
}

var (
	errTruncatedBody   = fmt.Errorf("the response ended before it reached its content-length: %w", io.ErrUnexpectedEOF)
	errTruncatedRecord = fmt.Errorf("the connection ended inside a TLS record: %w", io.ErrUnexpectedEOF)
	errTruncatedChunks = fmt.Errorf("the connection ended before the last chunk: %w", io.ErrUnexpectedEOF)
)

// Read returns io.EOF at the end of the body. Its error wraps io.ErrUnexpectedEOF if the connection ended earlier. The
// error is errIdle if no byte arrived within the idle timeout, and errNotReady if a polled transport has nothing to
// read.
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

func (b *body) noteArrival(at time.Time) {
	if b.arrival != nil {
		*b.arrival = at
	}
}

// finalReadTimeout is the timeout of a read for bytes that have already arrived.
const finalReadTimeout = 50 * time.Millisecond

// handleReadError turns an error of the transport into the result of the read. It returns no error (errNotReady for a
// polled transport) if the sweep interrupted the read although the server is not silent. After a pause of the process,
// for example by SIGSTOP, all servers seem silent. handleReadError therefore first reads bytes that have already
// arrived.
func (b *body) handleReadError(p []byte, err error) (int, error) {
	if !b.isInterrupted.Load() || err != errNotReady && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	now := time.Since(processStart)
	if st, ok := b.transport.(*h2Stream); ok {
		now = st.conn.readAt // the turn of the stream may precede the read of the connection
	}
	silent := b.isSilent(now)
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

// watch makes reads fail with errIdle if no byte arrives within the idle timeout after at. Without an initial timeout,
// it does nothing. The caller must always call unwatch after the last read.
func (b *body) watch(at time.Time) {
	if b.limit() > 0 {
		processSweep.watch(&b.idleMark, at)
	}
}

// unwatch releases the resources of watch and decodedReader.
func (b *body) unwatch() {
	processSweep.forget(&b.idleMark)
	if b.decompressor != nil {
		b.decompressor.stop()
	}
}

// decodedReader returns a reader of the body without its content coding. It is valid until unwatch.
func (b *body) decodedReader(r *Response) io.Reader {
	contentCoding := r.Coding()
	if contentCoding == "" {
		return b
	}
	b.decompressor = newDecompressor(contentCoding, b)
	return b.decompressor
}

// unwrap removes the framing from raw bytes in place and returns the number of bytes of the body.
func (b *body) unwrap(p []byte) (int, error) {
	switch b.kind {
	case chunked:
		n, done, err := b.dechunk(p)
		b.done = done
		return n, err
	case contentLength, endStream:
		n := int(min(uint64(len(p)), b.remaining)) // #nosec G115 -- at most len(p)
		b.remaining -= uint64(n)
		if b.excess = n < len(p); b.excess && b.kind == endStream {
			return n, errLongBody
		}
		return n, nil
	default:
		return len(p), nil
	}
}

func (b *body) endError(err error) error {
	if err == errNotReady { // the most frequent case
		return err
	}
	if err == io.ErrUnexpectedEOF { // only crypto/tls returns this value
		return errTruncatedRecord
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case b.kind == chunked:
		return errTruncatedChunks
	case b.remaining > 0:
		return errTruncatedBody
	default:
		return io.EOF
	}
}
