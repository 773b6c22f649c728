package coding

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

type encoder interface {
	io.WriteCloser
	Flush() error
}

// encoders has an encoder for each supported format.
var encoders = []struct {
	name, coding string
	start        func(io.Writer) encoder
}{
	{"gzip", "gzip", func(w io.Writer) encoder { return gzip.NewWriter(w) }},
	{"deflate as zlib", "deflate", func(w io.Writer) encoder { return zlib.NewWriter(w) }},
	{"raw deflate", "deflate", func(w io.Writer) encoder { e, _ := flate.NewWriter(w, 6); return e }},
	{"br", "br", func(w io.Writer) encoder { return brotli.NewWriter(w) }},
	{"zstd", "zstd", func(w io.Writer) encoder { e, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); return e }},
}

// forEach runs a parallel subtest for each encoder.
func forEach(t *testing.T, test func(t *testing.T, coding string, start func(io.Writer) encoder)) {
	t.Parallel()
	for _, e := range encoders {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e.coding, e.start)
		})
	}
}

// packed returns an encoded text.
func packed(start func(io.Writer) encoder, text string) []byte {
	var out bytes.Buffer
	e := start(&out)
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

// errNothingYet is the error of a read that would have to wait.
var errNothingYet = errors.New("a read that would have waited")

// Flushed data is returned without another byte or read. An empty flush returns nothing.
func TestFlushedDataIsReturnedAtOnce(t *testing.T) {
	forEach(t, func(t *testing.T, coding string, start func(io.Writer) encoder) {
		var wire bytes.Buffer
		e := start(&wire)
		r, err := New(coding, readerFunc(func(p []byte) (int, error) {
			if wire.Len() == 0 {
				return 0, errNothingYet
			}
			return wire.Read(p[:1]) // one byte per read
		}))
		require.NoError(t, err)
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

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A stream is complete only if it has the end mark of its coding. Data before any other end is also returned.
func TestOnlyTheEndMarkEndsAStream(t *testing.T) {
	forEach(t, func(t *testing.T, coding string, start func(io.Writer) encoder) {
		const text = "data: 0\n\ndata: 1\n\n"
		var flushed bytes.Buffer
		e := start(&flushed)
		_, _ = io.WriteString(e, text)
		require.NoError(t, e.Flush())
		complete := packed(start, text)
		for name, tt := range map[string]struct {
			src  io.Reader
			want string
			err  error
		}{
			"the end mark":                           {bytes.NewReader(complete), text, nil},
			"the end mark, a byte at a time":         {iotest.OneByteReader(bytes.NewReader(complete)), text, nil},
			"the end mark with the data":             {iotest.DataErrReader(bytes.NewReader(complete)), text, nil},
			"no data":                                {strings.NewReader(""), "", nil},
			"an empty stream":                        {bytes.NewReader(packed(start, "")), "", nil},
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
	gzipped := packed(encoders[0].start, text)
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
		"a wrong sum":                {"gzip", string(wrongSum), "invalid gzip data: gzip: invalid checksum"},
		"text after gzip":            {"gzip", string(gzipped) + text, "invalid gzip data: gzip: invalid header"},
		"text after deflate":         {"deflate", string(packed(encoders[1].start, text)) + text, "deflate: unexpected bytes after the end of the compressed stream"},
		"text after br":              {"br", string(packed(encoders[3].start, text)) + text, "invalid br data: brotli: excessive input"},
		"text after zstd":            {"zstd", string(packed(encoders[4].start, text)) + text, "invalid zstd data: "},
		"a dictionary":               {"deflate", "\x78\xbb\x00\x00\x00\x02", "invalid deflate data: zlib: invalid dictionary"},
		"a window that is too large": {"zstd", window.String(), "the window of the zstd stream exceeds 8 MB (RFC 9659)"},
	} {
		got, err := unpack(t, tt.coding, strings.NewReader(tt.src))
		require.ErrorContains(t, err, tt.want, name)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF, name)
		require.Contains(t, []string{"", text}, got, name)
	}
}

// Gzip members and zstd frames may follow each other, as in concatenated files.
func TestConcatenatedMembersAreOneStream(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 4} {
		e := encoders[n]
		got, err := unpack(t, e.coding, bytes.NewReader(append(packed(e.start, "data: 0\n\n"), packed(e.start, "data: 1\n\n")...)))
		require.NoError(t, err)
		require.Equal(t, "data: 0\n\ndata: 1\n\n", got)
	}
}

// If a server compresses each event separately, an event is returned before the next one arrives.
func TestMemberIsReturnedAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 4} {
		e := encoders[n]
		var wire bytes.Buffer
		r, err := New(e.coding, readerFunc(func(p []byte) (int, error) {
			if wire.Len() == 0 {
				return 0, errNothingYet
			}
			return wire.Read(p)
		}))
		require.NoError(t, err)
		for n := range 50 {
			text := fmt.Sprintf("id: %d\ndata: %s\n\n", n, strings.Repeat("x", 40*n))
			_, _ = wire.Write(packed(e.start, text))
			got := make([]byte, len(text))
			_, err := io.ReadFull(r, got)
			require.NoError(t, err, "%s %d", e.name, n)
			require.Equal(t, text, string(got))
		}
	}
}

// Highly compressed data uses no more memory than the window. The test is not parallel, because it counts the
// allocations of the process.
func TestCompressionBombUsesLittleMemory(t *testing.T) {
	for _, e := range encoders {
		var wire bytes.Buffer
		w := e.start(&wire)
		for range 32 {
			_, _ = w.Write(make([]byte, 1<<20))
		}
		_ = w.Close()
		require.Less(t, wire.Len(), 100<<10)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := New(e.coding, &wire)
		require.NoError(t, err)
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 512))
		require.NoError(t, err)
		require.EqualValues(t, 32<<20, n)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20<<20), e.name)
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

// FuzzReader checks that a reader ends for any input, and then returns the same error again.
func FuzzReader(f *testing.F) {
	for _, e := range encoders {
		f.Add(e.coding, packed(e.start, "data: 0\n\ndata: 1\n\n"), uint8(1))
		f.Add(e.coding, packed(e.start, strings.Repeat("data: 0\n\n", 5000)), uint8(200))
	}
	f.Fuzz(func(t *testing.T, coding string, data []byte, step uint8) {
		const maxSize = 4 << 20 // limits the duration
		r, err := New(coding, iotest.TimeoutReader(bytes.NewReader(data)))
		if err != nil {
			t.Skip()
		}
		buf := make([]byte, int(step)+512)
		idle := 0
		for sum := 0; err == nil && sum < maxSize; {
			var n int
			n, err = r.Read(buf)
			sum += n
			if idle++; n > 0 {
				idle = 0
			}
			if idle > 100 {
				t.Fatal("the reader returns neither data nor an error")
			}
		}
		if err != nil {
			if _, repeated := r.Read(buf); repeated != err {
				t.Fatalf("got the error %v, then %v; want the same error again", err, repeated)
			}
		}
	})
}

// BenchmarkMemory reports the memory of a waiting stream in each coding.
func BenchmarkMemory(b *testing.B) {
	for _, e := range encoders {
		b.Run(e.name, func(b *testing.B) {
			var wire bytes.Buffer
			w := e.start(&wire)
			for n := range 10 {
				_, _ = fmt.Fprintf(w, ": sent=%d\nid: %d\ndata: 0\n\n", 1764000000000000+n, n)
				_ = w.Flush()
			}
			b.ReportAllocs()
			for b.Loop() {
				r, _ := New(e.coding, bytes.NewReader(wire.Bytes()))
				_, _ = io.Copy(io.Discard, struct{ io.Reader }{r})
			}
		})
	}
}
