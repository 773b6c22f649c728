package sseclient

import (
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// An unpacking reads a compressed body. Decoders cannot continue after errNotReady, so it runs in a coroutine that
// pauses until bytes arrive. The body is read outside of it, on the stack of the stream's reader: the coroutine's own
// is kept for as long as the stream is open.
type unpacking struct {
	body io.Reader
	next func() (want, bool)
	stop func() // for the reader, which reads no more then

	pending []byte // that were unpacked, in a buffer of the coroutine's
	end     error  // what follows these; nil: more may
	target  []byte // where the decoder wants bytes; nil: it does not wait
	n       int    // there
	err     error  // the same
}

// want is what the coroutine tells when it rests: only that it does.
type want struct{}

var _ io.Reader = (*unpacking)(nil)

// unpackBuffer is for what comes out of a decoder at once.
const unpackBuffer = 1 << 10

// errReadNoMore ends a decoder whose stream has ended.
var errReadNoMore = errors.New("the stream is read no more")

// unpack undoes a coding that is known.
func unpack(name string, body io.Reader) *unpacking {
	u := &unpacking{body: body}
	u.next, u.stop = iter.Pull(func(rest func(want) bool) {
		decoder, err := coding.New(name, readFunc(func(p []byte) (int, error) {
			if u.target = p; !rest(want{}) {
				return 0, errReadNoMore
			}
			return u.n, u.err
		}))
		buf := make([]byte, unpackBuffer)
		for n := 0; err == nil; {
			n, err = decoder.Read(buf)
			if u.pending, u.end = buf[:n], err; !rest(want{}) {
				return
			}
		}
	})
	return u
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Read returns errNotReady where the body does; what the decoder has by then has been returned before.
func (u *unpacking) Read(p []byte) (int, error) {
	for len(u.pending) == 0 {
		if u.end != nil {
			return 0, u.end
		}
		if u.target != nil {
			if u.n, u.err = u.body.Read(u.target); u.err == errNotReady {
				return 0, errNotReady
			}
			u.target = nil
		}
		u.next()
	}
	n := copy(p, u.pending)
	u.pending = u.pending[n:]
	return n, nil
}

// asks reports whether the request accepts a content coding: by its own header, or by the setting.
func (r *request) asks(name string) bool {
	accept := r.accept
	if value, set := r.header[http.CanonicalHeaderKey("Accept-Encoding")]; set {
		accept = value[0]
	}
	return coding.Accepts(accept, name)
}
