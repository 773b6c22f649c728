package sseclient

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func dechunk(text string, size int) (out string, done bool, err error) {
	var f framing
	for text != "" && !done && err == nil {
		piece := []byte(text[:min(size, len(text))])
		text = text[len(piece):]
		var n int
		n, done, err = f.dechunk(piece)
		out += string(piece[:n])
	}
	return out, done, err
}

func TestDechunk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in, want string
		done     bool
		fails    bool
	}{
		{"5\r\nhello\r\n0\r\n\r\n", "hello", true, false},
		{"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\ntrash", "hello world", true, false},
		{"A;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\nMore: y\r\n\r\n", "0123456789", true, false},
		{"00a \r\n0123456789\r\n", "0123456789", false, false},
		{"1\nx\n0\n\n", "x", true, false},
		{"5\r\nhel", "hel", false, false},
		{"0\r\n", "", false, false},
		{"\r\n", "", false, true},
		{"g\r\n", "", false, true},
		{"1x\r\n", "", false, true},
		{"1\r\nab", "a", false, true},
		{"1\r\na\rb", "a", false, true},
		{"fffffffffffffffff\r\n", "", false, true},
		{"1;" + strings.Repeat("x", 9000), "", false, true},
		{"0\r\nX: " + strings.Repeat("x", 9000), "", false, true},
		{"0\r\n" + strings.Repeat("x\n", 9000), "", false, true},
	} {
		for _, size := range []int{1, 2, 3, 7, 1000} {
			out, done, err := dechunk(tt.in, size)
			require.Equal(t, tt.want, out, "%q in pieces of %d", tt.in, size)
			require.Equal(t, tt.done, done, "%q in pieces of %d", tt.in, size)
			require.Equal(t, tt.fails, err != nil, "%q in pieces of %d: %v", tt.in, size, err)
		}
	}
}

// FuzzChunkDecoder checks that our decoder returns the same data as the decoder of net/http, and that the sizes of the
// pieces have no effect.
func FuzzChunkDecoder(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"), 3)
	f.Add([]byte("a;x=y\r\n0123456789\r\n0\r\nA: b\r\n\r\n"), 1)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		size = size&63 + 1
		want, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(in)))
		got, done, ourErr := dechunk(string(in), size)
		if err == nil && ourErr == nil {
			// NewChunkedReader stops before the trailer, which may be truncated.
			require.Equal(t, string(want), got)
		}
		unsplit, unsplitDone, unsplitErr := dechunk(string(in), len(in)+1)
		require.Equal(t, fmt.Sprint(unsplit, unsplitDone, unsplitErr), fmt.Sprint(got, done, ourErr))
	})
}
