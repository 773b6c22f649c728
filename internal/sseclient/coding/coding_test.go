package coding

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/packing"
)

// encoders has an encoder with the default window size for each supported format.
var encoders = map[string]func(io.Writer) packing.Encoder{
	"gzip": packing.Encoders["gzip"], "deflate": packing.Encoders["deflate"], "br": packing.Encoders["br"],
	"raw deflate": func(w io.Writer) packing.Encoder { e, _ := flate.NewWriter(w, 6); return e },
	"zstd":        func(w io.Writer) packing.Encoder { e, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); return e },
}

func codingOf(format string) string { return strings.TrimPrefix(format, "raw ") }

func forEach(t *testing.T, test func(t *testing.T, format string)) {
	t.Parallel()
	for format := range encoders {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			test(t, format)
		})
	}
}

func pack(format, text string) []byte {
	var out bytes.Buffer
	e := encoders[format](&out)
	_, _ = io.WriteString(e, text)
	_ = e.Close()
	return out.Bytes()
}

// unpack returns the decoded text of a source and the final error, which a second read must return again.
func unpack(t *testing.T, coding string, src io.Reader) (string, error) {
	t.Helper()
	r, err := New(coding, src)
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	_, repeated := r.Read(make([]byte, 1))
	if err == nil {
		require.Equal(t, io.EOF, repeated)
	} else {
		require.Equal(t, err, repeated)
	}
	return string(text), err
}

var errWouldBlock = errors.New("a read that would have waited")

// Flushed data is returned without a further byte or read. An empty flush adds no data.
func TestFlushedDataIsReturnedAtOnce(t *testing.T) {
	forEach(t, func(t *testing.T, format string) {
		var wire bytes.Buffer
		e, r := encoders[format](&wire), newWireReader(t, format, &wire, 1)
		random := rand.New(rand.NewPCG(1, 2))
		for n := range 200 {
			text := fmt.Sprintf("id: %d\ndata: %s\n\n", n, strings.Repeat("x", random.IntN(100)))
			if n == 150 {
				text = strings.Repeat(text, 2000) // more than a window of gzip
			}
			_, _ = io.WriteString(e, text)
			require.NoError(t, e.Flush())
			if n%3 == 0 {
				require.NoError(t, e.Flush())
			}
			got := make([]byte, len(text))
			_, err := io.ReadFull(r, got)
			require.NoError(t, err, n)
			require.Equal(t, text, string(got))
		}
	})
}

// newWireReader returns a Reader of the bytes that have arrived on wire. It reads at most size bytes at once.
func newWireReader(t *testing.T, format string, wire *bytes.Buffer, size int) *Reader {
	t.Helper()
	r, err := New(codingOf(format), readerFunc(func(p []byte) (int, error) {
		if wire.Len() == 0 {
			return 0, errWouldBlock
		}
		return wire.Read(p[:min(len(p), size)])
	}))
	require.NoError(t, err)
	return r
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A stream with data is complete only if it has the end mark of its coding. Data before any other end is also returned.
func TestOnlyTheEndMarkEndsAStream(t *testing.T) {
	forEach(t, func(t *testing.T, format string) {
		const text = "data: 0\n\ndata: 1\n\n"
		coding := codingOf(format)
		var flushed bytes.Buffer
		e := encoders[format](&flushed)
		_, _ = io.WriteString(e, text)
		require.NoError(t, e.Flush())
		complete := pack(format, text)
		for name, tt := range map[string]struct {
			src  io.Reader
			want string
			err  error
		}{
			"the end mark":                           {bytes.NewReader(complete), text, nil},
			"the end mark, a byte at a time":         {iotest.OneByteReader(bytes.NewReader(complete)), text, nil},
			"the end mark with the data":             {iotest.DataErrReader(bytes.NewReader(complete)), text, nil},
			"no data":                                {strings.NewReader(""), "", nil},
			"an empty stream":                        {bytes.NewReader(pack(format, "")), "", nil},
			"a flush":                                {bytes.NewReader(flushed.Bytes()), text, errTruncated},
			"a broken connection":                    {io.MultiReader(bytes.NewReader(flushed.Bytes()), iotest.ErrReader(syscall.ECONNRESET)), text, syscall.ECONNRESET},
			"a broken connection after the end mark": {io.MultiReader(bytes.NewReader(complete), iotest.ErrReader(syscall.ECONNRESET)), text, syscall.ECONNRESET},
			"a broken connection before any data":    {iotest.ErrReader(syscall.ECONNRESET), "", syscall.ECONNRESET},
		} {
			got, err := unpack(t, coding, tt.src)
			require.Equal(t, tt.want, got, name)
			require.Equal(t, tt.err, err, name)
		}
		for n := 1; n < len(complete); n++ {
			_, err := unpack(t, coding, bytes.NewReader(complete[:n]))
			require.Equal(t, errTruncated, err, "truncated after %d of %d bytes", n, len(complete))
		}
		require.ErrorIs(t, errTruncated, io.ErrUnexpectedEOF)
	})
}

func TestInvalidDataIsAnError(t *testing.T) {
	t.Parallel()
	const text = "data: 0\n\ndata: 1\n\n"
	gzipped := pack("gzip", text)
	wrongSum := bytes.Clone(gzipped)
	wrongSum[len(wrongSum)-8] ^= 1
	var window bytes.Buffer
	z, err := zstd.NewWriter(&window, zstd.WithWindowSize(16<<20))
	require.NoError(t, err)
	_, _ = io.WriteString(z, text)
	require.NoError(t, z.Flush())
	for name, tt := range map[string]struct{ coding, src, want string }{
		"text, not gzip":             {"gzip", text, "invalid gzip data: gzip: invalid header"},
		"text, not br":               {"br", text, "invalid br data: brotli: "},
		"text, not zstd":             {"zstd", text, "invalid zstd data: "},
		"text, not deflate":          {"deflate", text, "invalid deflate data: flate: corrupt input before offset"},
		"a wrong checksum":           {"gzip", string(wrongSum), "invalid gzip data: gzip: invalid checksum"},
		"text after gzip":            {"gzip", string(gzipped) + text, "invalid gzip data: gzip: invalid header"},
		"text after deflate":         {"deflate", string(pack("deflate", text)) + text, "deflate: unexpected bytes after the end of the compressed stream"},
		"text after br":              {"br", string(pack("br", text)) + text, "invalid br data: brotli: excessive input"},
		"text after zstd":            {"zstd", string(pack("zstd", text)) + text, "invalid zstd data: "},
		"a dictionary":               {"deflate", "\x78\xbb\x00\x00\x00\x02", "invalid deflate data: zlib: invalid dictionary"},
		"a window that is too large": {"zstd", window.String(), "the window of the zstd stream exceeds 8 MB (RFC 9659)"},
	} {
		got, err := unpack(t, tt.coding, strings.NewReader(tt.src))
		require.ErrorContains(t, err, tt.want, name)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF, name)
		require.Contains(t, []string{"", text}, got, name)
	}
}

// If a server compresses each event separately, an event is returned before the next one arrives.
func TestMemberIsReturnedAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, coding := range []string{"gzip", "zstd"} {
		var wire bytes.Buffer
		r := newWireReader(t, coding, &wire, math.MaxInt)
		for n := range 50 {
			text := fmt.Sprintf("id: %d\ndata: %s\n\n", n, strings.Repeat("x", 40*n))
			_, _ = wire.Write(pack(coding, text))
			got := make([]byte, len(text))
			_, err := io.ReadFull(r, got)
			require.NoError(t, err, "%s, event %d", coding, n)
			require.Equal(t, text, string(got))
		}
	}
}

// A Reader of highly compressed data must use less memory than the decoded data. The test is not parallel, because it
// counts the allocations of the process.
func TestCompressionBombUsesLittleMemory(t *testing.T) {
	for format, start := range map[string]func(io.Writer) io.WriteCloser{ // at fast levels, to save time
		"gzip":    func(w io.Writer) io.WriteCloser { e, _ := gzip.NewWriterLevel(w, gzip.BestSpeed); return e },
		"deflate": func(w io.Writer) io.WriteCloser { e, _ := zlib.NewWriterLevel(w, zlib.BestSpeed); return e },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, brotli.BestSpeed) },
		"zstd":    func(w io.Writer) io.WriteCloser { return encoders["zstd"](w) },
	} {
		var wire bytes.Buffer
		w := start(&wire)
		for range 16 {
			_, _ = w.Write(make([]byte, 1<<20))
		}
		_ = w.Close()
		require.Less(t, wire.Len(), 100<<10)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := New(format, &wire)
		require.NoError(t, err)
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 512))
		require.NoError(t, err)
		require.EqualValues(t, 16<<20, n)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(12<<20), format)
	}
}

func TestNamesOfCodings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		accept, coding string
		want           bool
	}{
		{None, "gzip", false}, {Gzip, "gzip", true}, {Gzip, "br", false}, {Browser, "deflate", true}, {Browser, "br", true},
		{"x-gzip", "gzip", true}, {"GZIP; q=0.5", "gzip", true}, {"gzip;q=0", "gzip", false}, {"*", "br", true},
		{"br;q=0, *", "br", false}, {"br;q=0, *", "gzip", true}, {"*;q=0", "gzip", false}, {"gzip;q=x", "gzip", false}, {"identity", "gzip", false},
	} {
		require.Equal(t, tt.want, Accepts(tt.accept, tt.coding), "%+v", tt)
	}
	for header, want := range map[string]string{"": "", " Identity ": "", "X-Gzip": "gzip", "BR": "br", "gzip, br": "gzip, br"} {
		require.Equal(t, want, Name(header))
	}
	require.Equal(t, "gzip", Name("identity", "X-Gzip"))
	require.Empty(t, Name("none"))
	require.Equal(t, "gzip, br", Name("gzip", "br, identity"))
	require.Empty(t, Name())
	for value, want := range map[string]string{"none": None, "gzip": Gzip, "browser": Browser} {
		accept, err := AcceptEncoding(value)
		require.NoError(t, err)
		require.Equal(t, want, accept)
	}
	_, err := AcceptEncoding("brotli")
	require.EqualError(t, err, `must be none, gzip or browser, got "brotli"`)
	for name := range strings.SplitSeq(Browser, ", ") {
		require.True(t, Supported(name))
	}
	_, err = New("gzip, br", strings.NewReader(""))
	require.EqualError(t, err, `unsupported Content-Encoding "gzip, br"; use one of gzip, deflate, br and zstd`)
	_, err = New("", strings.NewReader(""))
	require.Error(t, err)
}
