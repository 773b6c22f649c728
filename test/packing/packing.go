// Package packing compresses the text of streams for tests.
package packing

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// An Encoder compresses the data that is written to it.
type Encoder interface {
	io.WriteCloser
	Flush() error
}

// Encoders maps each content encoding to a function that returns a new encoder.
var Encoders = map[string]func(io.Writer) Encoder{
	"gzip":    func(w io.Writer) Encoder { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) Encoder { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) Encoder { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) Encoder {
		e, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(64<<10))
		return e
	},
}

// Compress returns text in a content encoding, including the end of the compressed data.
func Compress(coding, text string) string { return encode(coding, text, Encoder.Close) }

// CompressUnfinished returns text in a content encoding. The compressed data is flushed but not ended.
func CompressUnfinished(coding, text string) string { return encode(coding, text, Encoder.Flush) }

func encode(coding, text string, finish func(Encoder) error) string {
	var out bytes.Buffer
	e := Encoders[coding](&out)
	_, _ = io.WriteString(e, text)
	_ = finish(e)
	return out.String()
}
