package sseclient

import (
	"errors"
	"io"
	"iter"

	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// A decompressor decodes a compressed body. Decoders cannot continue after errNotReady, so the decoder runs in a
// coroutine that pauses until bytes arrive. The body is read outside the coroutine, on the stack of the stream's
// reader. The coroutine exists as long as the stream, so its stack must stay small.
type decompressor struct {
	body io.Reader
	next func() (struct{}, bool) // continues the coroutine until it pauses
	stop func()                  // ends the coroutine; no Read may follow

	pending []byte // decoded bytes, in a buffer of the coroutine
	end     error  // error of the decoder after pending; nil: none
	input   []byte // buffer into which the decoder reads; nil: the decoder does not wait for bytes
	n       int    // result of reading into input
	err     error  // result of reading into input
}

const decodedBufferSize = 1 << 10

var errStopped = errors.New("the stream has ended")

func newDecompressor(name string, body io.Reader) *decompressor {
	d := &decompressor{body: body}
	d.next, d.stop = iter.Pull(func(pause func(struct{}) bool) {
		decoder, err := coding.New(name, readFunc(func(p []byte) (int, error) {
			if d.input = p; !pause(struct{}{}) {
				return 0, errStopped
			}
			return d.n, d.err
		}))
		buf := make([]byte, decodedBufferSize)
		for n := 0; err == nil; {
			n, err = decoder.Read(buf)
			if d.pending, d.end = buf[:n], err; !pause(struct{}{}) {
				return
			}
		}
	})
	return d
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Read returns decoded bytes, or errNotReady if the body returns it.
func (d *decompressor) Read(p []byte) (int, error) {
	for len(d.pending) == 0 {
		if d.end != nil {
			return 0, d.end
		}
		if d.input != nil {
			if d.n, d.err = d.body.Read(d.input); d.err == errNotReady {
				return 0, errNotReady
			}
			d.input = nil
		}
		d.next()
	}
	n := copy(p, d.pending)
	d.pending = d.pending[n:]
	return n, nil
}

// accepts reports whether the request accepts a content coding. The user's Accept-Encoding replaces the setting.
func (r *request) accepts(name string) bool {
	accept := r.acceptEncoding
	if value, isSet := r.header["Accept-Encoding"]; isSet {
		accept = value[0]
	}
	return coding.Accepts(accept, name)
}
