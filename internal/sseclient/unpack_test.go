package sseclient

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

type packer interface {
	io.WriteCloser
	Flush() error
}

var packers = map[string]func(io.Writer) packer{
	"gzip":    func(w io.Writer) packer { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) packer { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) packer { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) packer {
		e, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(64<<10))
		return e
	},
}

// pack encodes a text in a coding.
func pack(coding, text string) string {
	var out bytes.Buffer
	z := packers[coding](&out)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return out.String()
}

// FuzzUnpacking: whatever comes in whatever pieces, a stream ends, and its coroutine with it.
func FuzzUnpacking(f *testing.F) {
	for coding := range packers {
		f.Add(coding, []byte(pack(coding, twoEvents)), uint8(3))
	}
	f.Fuzz(func(t *testing.T, coding string, data []byte, step uint8) {
		if packers[coding] == nil {
			t.Skip()
		}
		left, rest := data, false
		u := unpack(coding, readFunc(func(p []byte) (int, error) {
			if rest = !rest; rest {
				return 0, errNotReady
			}
			if len(left) == 0 {
				return 0, io.EOF
			}
			n := copy(p[:min(len(p), int(step)+1)], left)
			left = left[n:]
			return n, nil
		}))
		defer u.stop()
		buf := make([]byte, int(step)+1)
		for sum, waits := 0, 0; sum < 4<<20; {
			n, err := u.Read(buf)
			sum += n
			if err == errNotReady {
				if waits++; waits > 2*len(data)+10 {
					t.Fatal("it waits for ever")
				}
			} else if err != nil {
				if _, again := u.Read(buf); again != err {
					t.Fatalf("it ended with %v, and then with %v", err, again)
				}
				return
			}
		}
	})
}
