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

// parts returns the parts of r, each as one line of text, and the error that ended it.
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

func TestPartsOfAStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string
		err      error
	}{
		{"an event", "data: 0\n\n", []string{"[data=0]"}, io.EOF},
		{"nothing", "", nil, io.EOF},
		{"blank lines are not blocks", "\n\n\r\ndata\n\n\n\r", []string{"[data=]"}, io.EOF},
		{"a comment and its blank line", ": ping\n\n", []string{":ping", "[comment=ping]"}, io.EOF},
		{"an empty comment", ":\n\n", []string{":", "[comment=]"}, io.EOF},
		{"a name without data", "event: ping\n\n", []string{"[name=ping]"}, io.EOF},
		{"an id without data", "id: 1:0\n\ndata: a\n\n", []string{"[id=1:0]", "[data=a (id=1:0)]"}, io.EOF},
		{"a retry alone", "retry: 20\r\n\r\n", []string{"[retry=20ms]"}, io.EOF},
		{"an unknown field alone", "foo: 1\n\n", []string{"[]"}, io.EOF},
		{"all of it", ": sent=1\nid: 2\nevent: x\nretry: 3\n:y\ndata: z\n\n", []string{":sent=1", ":y", "[data=z name=x id=2 retry=3ms comment=sent=1\ny]"}, io.EOF},
		{"as Mercure sends it", ":\n:\nid: urn:uuid:1\ndata: a\n\n:\n:\n", []string{":", ":", "[data=a id=urn:uuid:1 comment=\n]", ":", ":"}, io.EOF},
		{"two blanks after the colon", ":  x\n", []string{": x"}, io.EOF},
		{"a byte order mark", "\xEF\xBB\xBF: x\r\r", []string{":x", "[comment=x]"}, io.EOF},
		{"a byte order mark and a blank line", "\xEF\xBB\xBF\n: x\n", []string{":x"}, io.EOF}, // a regression: the mark preceded the comment
		{"half a comment", ":\n: pi", []string{":"}, io.ErrUnexpectedEOF},
		{"half a line", "data: a\n\ndat", []string{"[data=a]"}, io.ErrUnexpectedEOF},
		{"half a block", ":\ndata: a\n", []string{":"}, io.ErrUnexpectedEOF},
		{"a comment inside half a block", "id: 1\n:\n", []string{":"}, io.ErrUnexpectedEOF},
		{"comments after a whole block", "data: a\n\n:b\n", []string{"[data=a]", ":b"}, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(tt.in), "bytewise": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				all, _, err := parts(New(r))
				assert.Equal(t, tt.want, all, name)
				assert.Equal(t, tt.err, err, name)
			}
		})
	}
}

// A heartbeat is reported when its line has ended: its blank line may come with the next event, hours later.
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

// Heartbeats without a blank line, for days, exhaust neither memory nor the limit. A comment before an event still
// belongs to it.
func TestHeartbeatsWithoutABlankLine(t *testing.T) {
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

func TestPartsHaveTheLimitsOfEvents(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"line": strings.Repeat("x", 101),
		"data": strings.Repeat("data: 0123456789\n", 11),
	} {
		p := New(nil)
		p.Reset(strings.NewReader(in), 100)
		_, _, err := parts(p)
		require.ErrorIs(t, err, ErrTooLong, name)
	}
}

// referenceParts is a simple implementation of NextPart.
func referenceParts(stream string) (all []string, unfinished bool) {
	stream = strings.TrimPrefix(stream, "\xEF\xBB\xBF")
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	lines := strings.Split(stream, "\n")
	last := lines[len(lines)-1]
	id := ""
	var block []string
	event := false
	for _, line := range lines[:len(lines)-1] {
		switch {
		case line == "" && block != nil:
			e := receivedEvent{ID: id}
			var data []string
			comment, hasComment := "", false
			for _, line := range block {
				name, value, _ := strings.Cut(line, ":")
				value = strings.TrimPrefix(value, " ")
				switch {
				case line[0] == ':' && hasComment:
					comment += "\n" + value
				case line[0] == ':':
					comment, hasComment = value, true
				case name == "data":
					data = append(data, value)
				case name == "event":
					e.Name = value
				case name == "id" && !strings.Contains(value, "\x00"):
					e.ID, e.HasID = value, true
				case name == "retry" && value != "" && strings.Trim(value, "0123456789") == "":
					retry, _ := reference("retry:" + value + "\ndata\n\n")
					e.Retry, e.HasRetry = retry[0].Retry, true
				}
			}
			id = e.ID
			e.Data, e.Comment = strings.Join(data, "\n"), comment
			all = append(all, eventText(e, data != nil, hasComment))
			block, event = nil, false
		case line == "":
		default:
			block = append(block, line)
			if line[0] == ':' {
				all = append(all, ":"+strings.TrimPrefix(line[1:], " "))
			} else {
				event = event || ofEvent(line)
			}
		}
	}
	return all, event || last != ""
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
			return // over the limit the oldest comments are dropped
		}
		want, unfinished := referenceParts(stream)
		wantErr := io.EOF
		if unfinished {
			wantErr = io.ErrUnexpectedEOF
		}
		all, events, err := parts(New(&chunks{text: stream, sizes: sizes}))
		require.Equal(t, want, all)
		require.Equal(t, wantErr, err)
		same, _ := parseAll(New(strings.NewReader(stream)))
		require.Equal(t, same, events, "the events must be those of Next")
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

// No part causes an allocation.
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
