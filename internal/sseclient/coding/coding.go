// Package coding decodes streams in the content codings of HTTP (RFC 9110, section 8.4). It returns flushed data at
// once. The window of the coding limits the memory use, even if a stream lasts for hours.
package coding

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Values of Accept-Encoding.
const (
	None    = ""                        // no header; clients then expect no compression
	Gzip    = "gzip"                    // the value of most clients except browsers
	Browser = "gzip, deflate, br, zstd" // the value of Chrome, Edge and Firefox over TLS
)

// NoneSetting is the setting for None. SettingsRule lists all settings in error messages.
const (
	NoneSetting  = "none"
	SettingsRule = "none, gzip or browser"
)

// Settings lists the settings for None, Gzip and Browser.
var Settings = []string{NoneSetting, "gzip", "browser"}

// AcceptEncoding returns the Accept-Encoding for one of Settings, or an error for any other setting.
func AcceptEncoding(setting string) (accept string, err error) {
	if i := slices.Index(Settings, setting); i >= 0 {
		return []string{None, Gzip, Browser}[i], nil
	}
	return "", fmt.Errorf("must be "+SettingsRule+", got %q", setting)
}

// Name returns the codings of all Content-Encoding fields as one list in lower case (RFC 9110), such as "gzip, br". It
// returns "" if there is no coding.
func Name(fields ...string) string {
	var names []string
	for name := range strings.SplitSeq(strings.ToLower(strings.Join(fields, ",")), ",") {
		switch name = strings.TrimSpace(name); name {
		case "", "identity", "none": // graphql-sse sends "none", which is not registered
		case "x-gzip": // section 8.4.1.3
			names = append(names, "gzip")
		default:
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Accepts reports whether a client with this Accept-Encoding accepts a coding (section 12.5.3). It returns false if
// accept is "": without the header a server may choose any coding, but clients do not expect one.
func Accepts(accept, coding string) bool {
	wildcard := false
	for entry := range strings.SplitSeq(accept, ",") {
		name, parameters, _ := strings.Cut(entry, ";")
		weight, hasWeight := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(parameters, " ", "")), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		isAccepted := !hasWeight || err == nil && q > 0
		switch name = Name(name); name {
		case coding:
			return isAccepted
		case "*":
			wildcard = isAccepted
		}
	}
	return wildcard
}

// maxWindow is the maximum window size of zstd according to RFC 9659. The window of gzip and deflate is 32 KB. The
// window of br is up to 16 MB, but its memory use grows only with the decoded data.
const maxWindow = 8 << 20

// readBuffer is the size of the read buffer of gzip and deflate. The other decoders have their own.
const readBuffer = 1 << 10

var (
	errTruncated    = fmt.Errorf("the compressed stream ended without its end mark: %w", io.ErrUnexpectedEOF)
	errTrailingData = errors.New("unexpected bytes after the end of the compressed stream")
)

// zstdMagicSize is the size of the magic number of a zstd frame. The decoder treats fewer bytes as the end of the
// stream.
const zstdMagicSize = 4

// decoders has a constructor for each supported coding. A constructor may read from src.
var decoders = map[string]func(src io.Reader) (io.Reader, error){
	"gzip":    newGzip,
	"deflate": newDeflate,
	"br":      func(src io.Reader) (io.Reader, error) { return brotli.NewReader(src), nil },
	"zstd":    newZstd,
}

// Supported reports whether New supports a coding.
func Supported(coding string) bool { return decoders[coding] != nil }

// A Reader decodes a stream in one coding. It reads from its source only during Read. It returns errors of the source
// unchanged, except io.EOF.
type Reader struct {
	coding     string
	src        source
	input      io.Reader // the source, buffered for some codings
	newDecoder func(io.Reader) (io.Reader, error)
	decoder    io.Reader // nil before the first Read
	err        error     // of the last Read
}

// New returns a Reader for a coding. The name of the coding must have the form that Name returns.
func New(coding string, src io.Reader) (*Reader, error) {
	r := &Reader{coding: coding, newDecoder: decoders[coding], src: source{Reader: src}}
	if r.newDecoder == nil {
		return nil, fmt.Errorf("unsupported Content-Encoding %q; use one of gzip, deflate, br and zstd", coding)
	}
	r.input = &r.src
	if coding == "gzip" || coding == "deflate" {
		r.input = bufio.NewReaderSize(&r.src, readBuffer)
	}
	return r, nil
}

// Read returns io.EOF if the source is empty, or ends after the end mark of the coding. Its error wraps
// io.ErrUnexpectedEOF if the source ends before the mark. Other errors come from the source or report invalid data.
func (r *Reader) Read(p []byte) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.decoder == nil {
		r.decoder, err = r.newDecoder(r.input)
	}
	if err == nil {
		n, err = r.decoder.Read(p)
	}
	if err != nil {
		r.err = r.cause(err)
	}
	if n > 0 {
		return n, nil
	}
	return 0, r.err
}

// cause returns the error that Read reports for an error of the decoder. An error of the source takes precedence.
func (r *Reader) cause(err error) error {
	if err == io.EOF && r.src.err == nil { // after the end mark, the source must end
		if _, err = io.ReadFull(r.input, make([]byte, 1)); err == nil {
			return fmt.Errorf("%s: %w", r.coding, errTrailingData)
		}
	}
	switch {
	case r.src.err != nil && r.src.err != io.EOF:
		return r.src.err
	case r.src.n == 0:
		return io.EOF // an empty source is complete
	case err == io.EOF && (r.coding != "zstd" || r.src.n >= zstdMagicSize):
		return io.EOF
	case err == io.EOF, err == io.ErrUnexpectedEOF && r.src.err == io.EOF:
		return errTruncated
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("the window of the zstd stream exceeds %d MB (RFC 9659)", maxWindow>>20)
	}
	return fmt.Errorf("invalid %s data: %w", r.coding, err)
}

type source struct {
	io.Reader
	n   int64 // bytes read
	err error // of the last read
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.Reader.Read(p)
	s.n, s.err = s.n+int64(n), err
	return n, err
}

// A gzipReader reads a gzip stream of one or more members. It returns the last data of a member without waiting for the
// next member, which may arrive only with the next event. The multistream mode of gzip.Reader would wait.
type gzipReader struct {
	src    *bufio.Reader
	member *gzip.Reader
}

func newGzip(src io.Reader) (io.Reader, error) {
	g := &gzipReader{src: src.(*bufio.Reader), member: new(gzip.Reader)}
	return g, g.next()
}

func (g *gzipReader) next() error {
	if err := g.member.Reset(g.src); err != nil {
		return err
	}
	g.member.Multistream(false)
	return nil
}

func (g *gzipReader) Read(p []byte) (n int, err error) {
	for {
		n, err = g.member.Read(p)
		switch {
		case err != io.EOF:
			return n, err
		case n > 0:
			return n, nil // the next read returns the end
		}
		if _, err = g.src.Peek(1); err != nil {
			return 0, err
		}
		if err = g.next(); err != nil {
			return 0, err
		}
	}
}

// newDeflate returns a decoder for deflate: the zlib format (RFC 9110), or raw deflate data, which many servers send.
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

// newZstd returns a decoder that starts no goroutine.
func newZstd(src io.Reader) (io.Reader, error) {
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}
