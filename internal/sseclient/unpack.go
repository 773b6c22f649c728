package sseclient

import (
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// An unpacking decodes a compressed body. Decoders cannot continue after errNotReady, so the decoder runs in a
// coroutine that pauses until bytes arrive. The body is read outside the coroutine, on the stack of the stream's
// reader, because the stack of the coroutine exists as long as the stream.
type unpacking struct {
	body io.Reader
	next func() (pauseSignal, bool)
	stop func() // ends the coroutine; no Read may follow

	pending []byte // decoded bytes, in a buffer of the coroutine
	end     error  // error of the decoder after pending; nil: none
	target  []byte // buffer in which the decoder expects bytes; nil: it expects none
	n       int    // result of reading into target
	err     error  // result of reading into target
}

// A pauseSignal is the value that the coroutine yields when it pauses.
type pauseSignal struct{}

var _ io.Reader = (*unpacking)(nil)

// unpackBuffer is the size of the buffer of decoded bytes.
const unpackBuffer = 1 << 10

// errStopped ends a decoder whose stream has ended.
var errStopped = errors.New("the stream has ended")

// unpack returns an unpacking of a supported coding.
func unpack(name string, body io.Reader) *unpacking {
	u := &unpacking{body: body}
	u.next, u.stop = iter.Pull(func(pause func(pauseSignal) bool) {
		decoder, err := coding.New(name, readFunc(func(p []byte) (int, error) {
			if u.target = p; !pause(pauseSignal{}) {
				return 0, errStopped
			}
			return u.n, u.err
		}))
		buf := make([]byte, unpackBuffer)
		for n := 0; err == nil; {
			n, err = decoder.Read(buf)
			if u.pending, u.end = buf[:n], err; !pause(pauseSignal{}) {
				return
			}
		}
	})
	return u
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Read returns decoded bytes, and errNotReady when the body does.
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

// accepts reports whether the request accepts a content coding, by its header or by the setting.
func (r *request) accepts(name string) bool {
	accept := r.accept
	if value, set := r.header[http.CanonicalHeaderKey("Accept-Encoding")]; set {
		accept = value[0]
	}
	return coding.Accepts(accept, name)
}
