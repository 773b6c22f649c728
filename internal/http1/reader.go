package http1

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"
)

// MaxInterim is the number of interim (1xx) responses after which a client stops waiting for a final one.
const MaxInterim = 10

// ErrInterim is the error for a server that sent MaxInterim interim responses without a final one.
var ErrInterim = fmt.Errorf("no final response after %d interim (1xx) responses", MaxInterim)

// A HeadTooLongError is the error for a response head that exceeds a limit. Its value is the limit in bytes.
type HeadTooLongError int

func (e HeadTooLongError) Error() string {
	return fmt.Sprintf("the response header exceeds %d bytes", int(e))
}

// A Reader reads responses from a connection.
type Reader struct {
	source limitedReader
	buffer *bufio.Reader
	first  time.Time // arrival of the first byte of the last head
}

// MaxHead is the maximum number of bytes of a head that a Reader of NewReader reads.
const MaxHead = 64 << 10

// NewReader returns a Reader of a connection.
func NewReader(conn io.Reader) *Reader { return newReader(conn, 1<<10, MaxHead) }

func newReader(conn io.Reader, size, maxHead int) *Reader {
	r := &Reader{source: limitedReader{Reader: conn, remaining: math.MaxInt, maxHead: maxHead}}
	r.buffer = bufio.NewReaderSize(&r.source, size)
	return r
}

// Buffered returns the bytes that were read beyond the last head or body.
func (r *Reader) Buffered() []byte {
	buffered, _ := r.buffer.Peek(r.buffer.Buffered())
	return buffered
}

// Head reads the head of the response to req. It uses only the method of req; nil means GET. It skips interim
// responses (1xx) except 101, after which no HTTP follows. With ErrInterim it returns the last interim response. The
// body of the response reads from the connection.
func (r *Reader) Head(req *http.Request) (resp *http.Response, err error) {
	r.first = time.Time{}
	r.source.remaining, r.source.err = r.source.maxHead, nil
	defer func() { r.source.remaining = math.MaxInt }()
	for range MaxInterim {
		if _, err := r.buffer.Peek(1); err != nil {
			return nil, err
		}
		r.first = time.Now()
		resp, err = http.ReadResponse(r.buffer, req)
		if err != nil {
			return nil, cmp.Or(r.source.err, err)
		}
		if resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
	}
	return resp, ErrInterim
}

// A limitedReader fails with a HeadTooLongError when remaining is used up.
type limitedReader struct {
	io.Reader
	remaining, maxHead int
	err                error // the first error; the parser of net/http may return another one instead
}

func (b *limitedReader) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		b.err = HeadTooLongError(b.maxHead)
		return 0, b.err
	}
	n, err := b.Reader.Read(p[:min(len(p), b.remaining)])
	b.remaining -= n
	b.err = cmp.Or(b.err, err)
	return n, err
}
