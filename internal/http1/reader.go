package http1

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"
)

// MaxInterim is the number of interim (1xx) responses before a final one.
const MaxInterim = 10

// ErrInterim is the error of a response that does not end with a final status.
var ErrInterim = fmt.Errorf("more than %d interim (1xx) responses", MaxInterim)

// A HeadTooLongError is the error of a response head that exceeds this number of bytes.
type HeadTooLongError int

func (e HeadTooLongError) Error() string {
	return fmt.Sprintf("the response header exceeds %d bytes", int(e))
}

// A Reader reads responses from a connection.
type Reader struct {
	from  bounded
	in    *bufio.Reader
	first time.Time // when the first byte of the last head arrived
}

// newReader returns a Reader with a buffer of that size and a limit for heads.
func newReader(size, maxHead int) *Reader {
	r := &Reader{from: bounded{maxHead: maxHead}}
	r.in = bufio.NewReaderSize(&r.from, size)
	return r
}

// MaxHead limits the heads that a borrowed Reader reads.
const MaxHead = 64 << 10

var readers = sync.Pool{New: func() any { return newReader(1<<10, MaxHead) }}

// Borrow returns a Reader for one response on a connection, whose owner calls Return after it. So connections that are open for
// long, of which there may be many, have no buffer of their own.
func Borrow(conn io.Reader) *Reader {
	r := readers.Get().(*Reader) // only these are put there
	r.Reset(conn)
	return r
}

// Return ends the use of a Reader that was borrowed.
func (r *Reader) Return() {
	r.Reset(nil)
	readers.Put(r)
}

// Reset makes the Reader read from another connection; nil releases the last one.
func (r *Reader) Reset(conn io.Reader) {
	r.from.Reader, r.from.left = conn, math.MaxInt
	r.in.Reset(&r.from)
}

// Buffered returns the bytes that were read beyond the last head or body.
func (r *Reader) Buffered() []byte {
	buffered, _ := r.in.Peek(r.in.Buffered())
	return buffered
}

// Head reads the head of the response to a request, of which it needs the method; nil means GET. It skips interim responses (1xx),
// except 101, after which no HTTP follows; with ErrInterim it returns the last one. The body of the response is read from the
// connection.
func (r *Reader) Head(req *http.Request) (resp *http.Response, err error) {
	r.first = time.Time{}
	r.from.left, r.from.err = r.from.maxHead, nil
	defer func() { r.from.left = math.MaxInt }()
	for range MaxInterim {
		if _, err := r.in.Peek(1); err != nil {
			return nil, err
		}
		r.first = time.Now()
		resp, err = http.ReadResponse(r.in, req)
		if err != nil {
			return nil, cmp.Or(r.from.err, err)
		}
		if resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
	}
	return resp, ErrInterim
}

// A bounded reader reads no more bytes than are left.
type bounded struct {
	io.Reader
	left, maxHead int
	err           error // the first one, which the parser of net/http may replace by its own
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.err = HeadTooLongError(b.maxHead)
		return 0, b.err
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	b.err = cmp.Or(b.err, err)
	return n, err
}
