package stream

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// decode undoes a Content-Encoding. Each decoder gives what it has as soon as the encoder has flushed it.
func decode(encoding string, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		return &lazyGzip{body: body}, nil
	case "br":
		return brotli.NewReader(body), nil
	case "zstd":
		d, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, fmt.Errorf("decode zstd: %w", err)
		}
		return d, nil
	default:
		return nil, fmt.Errorf("the answer has the Content-Encoding %q: only gzip, br and zstd are known", encoding)
	}
}

// lazyGzip reads the header of gzip with the first byte that is asked for.
type lazyGzip struct {
	body io.Reader
	gzip *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.gzip == nil {
		r, err := gzip.NewReader(bufio.NewReaderSize(l.body, 4096))
		if err != nil {
			return 0, err
		}
		l.gzip = r
	}
	return l.gzip.Read(p)
}
