// Package coding decodes the content codings of HTTP (RFC 9110, section 8.4) of streams that last for hours: flushed
// data comes out at once, and memory is bounded by the window of the coding. It imports nothing of k6.
package coding

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// What a client says in Accept-Encoding.
const (
	None    = ""                        // nothing: no server should compress then
	Gzip    = "gzip"                    // as curl --compressed of old, and most clients that are no browser
	Browser = "gzip, deflate, br, zstd" // as Chrome, Edge and Firefox over TLS
)

// Setting is the Accept-Encoding of a setting's value: none, gzip or browser.
func Setting(value string) (accept string, err error) {
	switch value {
	case "none":
		return None, nil
	case "gzip":
		return Gzip, nil
	case "browser":
		return Browser, nil
	}
	return "", fmt.Errorf("%q, which is neither none, gzip nor browser", value)
}

// Name is the coding that a Content-Encoding names, in lower case; "" for none. Several fields are one list (RFC 9110, section 5.3).
func Name(fields ...string) string {
	var names []string
	for name := range strings.SplitSeq(strings.ToLower(strings.Join(fields, ",")), ",") {
		switch name = strings.TrimSpace(name); name {
		case "", "identity", "none": // graphql-sse sends the last one, which is not registered
		case "x-gzip": // section 8.4.1.3
			names = append(names, "gzip")
		default:
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Accepts reports whether a client with this Accept-Encoding accepts a coding (section 12.5.3). Without the header a
// server may choose any, but no client that sends none expects that.
func Accepts(accept, coding string) bool {
	wildcard := false
	for entry := range strings.SplitSeq(accept, ",") {
		name, parameters, _ := strings.Cut(entry, ";")
		weight, weighted := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(parameters, " ", "")), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		wanted := !weighted || err == nil && q > 0
		switch name = Name(name); name {
		case coding:
			return wanted
		case "*":
			wildcard = wanted
		}
	}
	return wildcard
}

// maxWindow is the largest window of zstd: what RFC 9659 asks of servers. That of gzip and deflate has 32 KB, that of br 16 MB,
// of which memory takes no more than has come.
const maxWindow = 8 << 20

// readBuffer is for the bytes that one read brings, of gzip and deflate; the other decoders have their own.
const readBuffer = 1 << 10

var (
	errTruncated = fmt.Errorf("the compressed stream ended without its end mark: %w", io.ErrUnexpectedEOF)
	errBehind    = errors.New("bytes follow behind the end of the compressed stream")
)

// zstdMagic is how many bytes each frame of zstd begins with. Its decoder takes a part of them for the end.
const zstdMagic = 4

// decoders has a constructor for each supported coding. It may read.
var decoders = map[string]func(src io.Reader) (io.Reader, error){
	"gzip":    newGzip,
	"deflate": newDeflate,
	"br":      func(src io.Reader) (io.Reader, error) { return brotli.NewReader(src), nil },
	"zstd":    newZstd,
}

// Supported reports whether New knows a coding.
func Supported(coding string) bool { return decoders[coding] != nil }

// A Reader undoes a coding. It reads from its source only when it is read itself, and whatever the source ends with comes out
// as it is, where the coding has not ended before: the errors of a connection are those of the stream.
type Reader struct {
	coding string
	src    source
	from   io.Reader // the source, or a buffer on it
	begin  func(io.Reader) (io.Reader, error)
	out    io.Reader // nil until the first byte came
	err    error     // the last one
}

var _ io.Reader = (*Reader)(nil)

// New undoes a coding, as Of names it.
func New(coding string, src io.Reader) (*Reader, error) {
	if coding == "" {
		return nil, errors.New("no content coding to undo")
	}
	r := &Reader{coding: coding, begin: decoders[coding], src: source{Reader: src}}
	if r.begin == nil {
		return nil, fmt.Errorf("the response has the Content-Encoding %q: only gzip, deflate, br and zstd are known, one at a time", coding)
	}
	r.from = &r.src
	if coding == "gzip" || coding == "deflate" {
		r.from = bufio.NewReaderSize(&r.src, readBuffer)
	}
	return r, nil
}

// Read returns io.EOF if both the coding and the source have ended, and an error that wraps io.ErrUnexpectedEOF if
// the source ended before. Other errors report wrong data.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.read(p)
	if err != nil {
		r.err = r.cause(err)
		if n == 0 {
			return 0, r.err
		}
	}
	return n, nil
}

func (r *Reader) read(p []byte) (n int, err error) {
	if r.out == nil {
		if r.out, err = r.begin(r.from); err != nil {
			return 0, err
		}
	}
	return r.out.Read(p)
}

// cause returns the reason of a decoder's error: that of the source comes first.
func (r *Reader) cause(err error) error {
	if err == io.EOF && r.src.err == nil { // its end mark, behind which the source has to end
		if _, err = io.ReadFull(r.from, make([]byte, 1)); err == nil {
			return fmt.Errorf("%s: %w", r.coding, errBehind)
		}
	}
	switch {
	case r.src.err != nil && r.src.err != io.EOF:
		return r.src.err
	case r.src.n == 0:
		return io.EOF // nothing came: nothing is missing
	case err == io.EOF && (r.coding != "zstd" || r.src.n >= zstdMagic):
		return io.EOF
	case err == io.EOF, err == io.ErrUnexpectedEOF && r.src.err == io.EOF:
		return errTruncated
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("the zstd stream has a window over %d MB, the most that a server may use (RFC 9659)", maxWindow>>20)
	}
	return fmt.Errorf("the %s data are broken: %w", r.coding, err)
}

// source is where the bytes come from.
type source struct {
	io.Reader
	n   int64 // have come
	err error // how they ended
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.Reader.Read(p)
	s.n, s.err = s.n+int64(n), err
	return n, err
}

// members are those of a gzip stream. Each comes out when it has ended: the reader of many first waits for the head of the next,
// which may be as far away as the next event.
type members struct {
	src *bufio.Reader
	one *gzip.Reader
}

func newGzip(src io.Reader) (io.Reader, error) {
	m := &members{src: src.(*bufio.Reader), one: new(gzip.Reader)}
	return m, m.next()
}

func (m *members) next() error {
	if err := m.one.Reset(m.src); err != nil {
		return err
	}
	m.one.Multistream(false)
	return nil
}

func (m *members) Read(p []byte) (n int, err error) {
	for {
		n, err = m.one.Read(p)
		switch {
		case err != io.EOF:
			return n, err
		case n > 0:
			return n, nil // the end comes at the next read
		}
		if _, err = m.src.Peek(1); err != nil {
			return 0, err
		}
		if err = m.next(); err != nil {
			return 0, err
		}
	}
}

// newDeflate undoes what the standard calls deflate, which is zlib, or what many servers send as that, deflate alone.
func newDeflate(src io.Reader) (io.Reader, error) {
	head, err := src.(*bufio.Reader).Peek(2)
	if len(head) == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(src)
	}
	if len(head) == 0 {
		return nil, err
	}
	return flate.NewReader(src), nil
}

// newZstd is a decoder that runs in the goroutine that reads it.
func newZstd(src io.Reader) (io.Reader, error) {
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}
