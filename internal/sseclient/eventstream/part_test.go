package eventstream

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parts returns the parts of a stream as text, its events, and the final error.
func parts(p *Parser) (all []string, events []receivedEvent, err error) {
	var b Block
	for {
		part, err := p.NextPart(&b)
		if err != nil {
			return all, events, err
		}
		if part == CommentLine {
			all = append(all, fmt.Sprintf(":%s", b.Comment))
			continue
		}
		all = append(all, eventText(copyEvent(&b.Event), b.HasData, b.HasComment))
		if b.HasData {
			events = append(events, copyEvent(&b.Event))
		}
	}
}

// eventText returns a block in the notation of the tests: data=, name=, id= (in brackets if an earlier block set it),
// retry=, comment=.
func eventText(e receivedEvent, hasData, hasComment bool) string {
	var out []string
	if hasData {
		out = append(out, "data="+e.Data)
	}
	if e.Name != "" {
		out = append(out, "name="+e.Name)
	}
	if e.HasID {
		out = append(out, "id="+e.ID)
	} else if e.ID != "" {
		out = append(out, "(id="+e.ID+")")
	}
	if e.HasRetry {
		out = append(out, "retry="+e.Retry.String())
	}
	if hasComment {
		out = append(out, "comment="+e.Comment)
	}
	return "[" + strings.Join(out, " ") + "]"
}

func TestNextPart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string
		err      error
	}{
		{"an event", "data: 0\n\n", []string{"[data=0]"}, io.EOF},
		{"an empty stream", "", nil, io.EOF},
		{"blank lines are not blocks", "\n\n\r\ndata\n\n\n\r", []string{"[data=]"}, io.EOF},
		{"a comment and its blank line", ": ping\n\n", []string{":ping", "[comment=ping]"}, io.EOF},
		{"an empty comment", ":\n\n", []string{":", "[comment=]"}, io.EOF},
		{"a name without data", "event: ping\n\n", []string{"[name=ping]"}, io.EOF},
		{"an id without data", "id: 1:0\n\ndata: a\n\n", []string{"[id=1:0]", "[data=a (id=1:0)]"}, io.EOF},
		{"only a retry", "retry: 20\r\n\r\n", []string{"[retry=20ms]"}, io.EOF},
		{"only an unknown field", "foo: 1\n\n", []string{"[]"}, io.EOF},
		{"all fields", ": sent=1\nid: 2\nevent: x\nretry: 3\n:y\ndata: z\n\n", []string{":sent=1", ":y", "[data=z name=x id=2 retry=3ms comment=sent=1\ny]"}, io.EOF},
		{"heartbeats of Mercure", ":\n:\nid: urn:uuid:1\ndata: a\n\n:\n:\n", []string{":", ":", "[data=a id=urn:uuid:1 comment=\n]", ":", ":"}, io.EOF},
		{"two spaces after the colon", ":  x\n", []string{": x"}, io.EOF},
		{"a byte order mark", "\xEF\xBB\xBF: x\r\r", []string{":x", "[comment=x]"}, io.EOF},
		{"a byte order mark and a blank line", "\xEF\xBB\xBF\n: x\n", []string{":x"}, io.EOF}, // the mark must not precede the comment
		{"an incomplete comment", ":\n: pi", []string{":"}, io.ErrUnexpectedEOF},
		{"an incomplete line", "data: a\n\ndat", []string{"[data=a]"}, io.ErrUnexpectedEOF},
		{"an incomplete block", ":\ndata: a\n", []string{":"}, io.ErrUnexpectedEOF},
		{"a comment inside an incomplete block", "id: 1\n:\n", []string{":"}, io.ErrUnexpectedEOF},
		{"comments after a block", "data: a\n\n:b\n", []string{"[data=a]", ":b"}, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"all at once": strings.NewReader(tt.in), "one byte per read": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				all, _, err := parts(New(r))
				assert.Equal(t, tt.want, all, name)
				assert.Equal(t, tt.err, err, name)
			}
		})
	}
}

// The blank line after a heartbeat may arrive with the next event, hours later.
func TestCommentIsReportedAtItsLineEnd(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	p := New(r)
	go func() { _, _ = io.WriteString(w, ":\n") }()
	var b Block
	part, err := p.NextPart(&b)
	require.NoError(t, err)
	require.Equal(t, CommentLine, part)
}

// Heartbeats may arrive for days without a blank line. A comment directly before an event still belongs to the event.
func TestHeartbeatsWithoutABlankLineUseLittleMemory(t *testing.T) {
	t.Parallel()
	const n = 100_000
	p := New(nil)
	p.Reset(strings.NewReader(strings.Repeat(": 2026-01-02T03:04:05Z\n", n)+": last\ndata: a\n\n"), 1000)
	var b Block
	for range n {
		part, err := p.NextPart(&b)
		require.NoError(t, err)
		require.Equal(t, CommentLine, part)
	}
	require.LessOrEqual(t, cap(p.comment), 2*smallBuffer)
	all, events, err := parts(p)
	require.Equal(t, io.EOF, err)
	require.Len(t, all, 2)
	require.Regexp(t, "Z\nlast$", events[0].Comment)
}

func FuzzParts(f *testing.F) {
	for _, seed := range []string{
		"data: 0\n\n", ":\n:\r\ndata\n\n", "event: ping\n\n", "\xEF\xBB\xBF: x\r\rid\revent: x\r\r",
		"id: 1\n\nretry: 5\n\nfoo\n\n: a\ndata: b\n\n:c\n", "id: 1\n:x\n",
	} {
		f.Add(seed, []byte{0, 3, 16})
		f.Add(seed, []byte{})
	}
	f.Fuzz(func(t *testing.T, stream string, sizes []byte) {
		if len(stream) > smallBuffer {
			return // NextPart may drop comments of a longer stream
		}
		want, wantEvents, unfinished := reference(stream)
		wantErr := io.EOF
		if unfinished {
			wantErr = io.ErrUnexpectedEOF
		}
		all, events, err := parts(New(&chunks{text: stream, sizes: sizes}))
		require.Equal(t, want, all)
		require.Equal(t, wantErr, err)
		require.Equal(t, wantEvents, events)
	})
}

func BenchmarkParts(b *testing.B) {
	for name, text := range map[string]string{
		"numbered": ": sent=1763683200123456\nid: 1234\ndata: 0\n\n",
		"ping":     "event: ping\n\n",
		"colon":    ":\n",
		"json":     "id: 1763683200:0\ndata: {\"run\":\"a1b2c3d4\",\"seq\":123456,\"t\":1763683200123456,\"pad\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}\n\n",
	} {
		b.Run(name, func(b *testing.B) {
			p := New(&endless{text: text})
			var block Block
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := p.NextPart(&block); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestPartsAllocateNothing(t *testing.T) {
	p := New(&endless{text: ":\n: ping\n\nevent: ping\n\nid: 12345\n\nretry: 10\n\n: sent=1\nid: 6\ndata: {\"seq\":1}\n\n"})
	var b Block
	next := func() {
		if _, err := p.NextPart(&b); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		next()
	}
	require.Zero(t, testing.AllocsPerRun(1000, next))
}
