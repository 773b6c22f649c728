package eventstream

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type receivedEvent struct {
	ID, Name, Data, Comment string
	HasID                   bool
	Retry                   time.Duration
	HasRetry                bool
}

func copyEvent(e *Event) receivedEvent {
	return receivedEvent{
		ID: string(e.ID), Name: string(e.Name), Data: string(e.Data), Comment: string(e.Comment),
		HasID: e.HasID, Retry: e.Retry, HasRetry: e.HasRetry,
	}
}

func parseAll(p *Parser) (events []receivedEvent, err error) {
	var e Event
	for {
		if err = p.Next(&e); err != nil {
			return events, err
		}
		events = append(events, copyEvent(&e))
	}
}

func TestParser(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string // in the notation of eventText
		err      error
	}{
		// The examples of section 9.2.6.
		{"spec: stock ticker, three lines of data", "data: YHOO\ndata: +2\ndata: 10\n\n", []string{"[data=YHOO\n+2\n10]"}, io.EOF},
		{"spec: four blocks, the last one unfinished", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n", []string{":test stream", "[comment=test stream]", "[data=first event id=1]", "[data=second event id=]"}, io.ErrUnexpectedEOF},
		{"spec: four blocks, the last one finished", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", []string{":test stream", "[comment=test stream]", "[data=first event id=1]", "[data=second event id=]", "[data= third event]"}, io.EOF},
		{"spec: data without values", "data\n\ndata\ndata\n\ndata:", []string{"[data=]", "[data=\n]"}, io.ErrUnexpectedEOF},
		{"spec: the space after the colon is ignored", "data:test\n\ndata: test\n\n", []string{"[data=test]", "[data=test]"}, io.EOF},

		// Section 9.2.5: stream = [ bom ] *event; end-of-line = CRLF / CR / LF.
		{"empty stream", "", nil, io.EOF},
		{"CR", "data: a\r\rdata: b\r\r", []string{"[data=a]", "[data=b]"}, io.EOF},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"[data=a]", "[data=b]"}, io.EOF},
		{"mixed line ends", "data: a\r\ndata: b\rdata: c\n\r\n", []string{"[data=a\nb\nc]"}, io.EOF},
		{"LF CR is two line ends", "data: a\n\rdata: b\n\n", []string{"[data=a]", "[data=b]"}, io.EOF},
		{"CR CRLF is a line and a blank line", "data: a\r\r\n", []string{"[data=a]"}, io.EOF},
		{"a BOM", "\xEF\xBB\xBFdata: a\n\n", []string{"[data=a]"}, io.EOF},
		{"only one BOM is removed", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", []string{"[]"}, io.EOF},
		{"a later BOM is part of the name", "data: a\n\n\xEF\xBB\xBFdata: b\n\n", []string{"[data=a]", "[]"}, io.EOF},
		{"only a BOM", "\xEF\xBB\xBF", nil, io.EOF},
		{"BOM before a blank line", "\xEF\xBB\xBF\ndata: a\n\n", []string{"[data=a]"}, io.EOF},
		{"an incomplete BOM", "\xEF\xBB", nil, io.ErrUnexpectedEOF},

		// Section 9.2.6: fields.
		{"only one space is removed", "data:  a\n\n", []string{"[data= a]"}, io.EOF},
		{"a tab remains", "data:\ta\n\n", []string{"[data=\ta]"}, io.EOF},
		{"colons in the value", "data:a:b: c\n\n", []string{"[data=a:b: c]"}, io.EOF},
		{"unknown and case-sensitive fields", "Data: x\nfoo: y\n data: z\ndata: a\n\n", []string{"[data=a]"}, io.EOF},
		{"event name", "event: noop\ndata: 0\n\ndata: 1\n\n", []string{"[data=0 name=noop]", "[data=1]"}, io.EOF},
		{"the last event field wins", "event: a\nevent: b\ndata\n\n", []string{"[data= name=b]"}, io.EOF},
		{"no data: no event, name reset", "event: a\n\ndata: b\n\n", []string{"[name=a]", "[data=b]"}, io.EOF},
		{"no data: the id is remembered", "id: 7\n\ndata: b\n\n", []string{"[id=7]", "[data=b (id=7)]"}, io.EOF},
		{"id persists", "id: 7\ndata: a\n\ndata: b\n\n", []string{"[data=a id=7]", "[data=b (id=7)]"}, io.EOF},
		{"id with NUL is ignored", "id: 7\ndata: a\n\nid: 8\x00\ndata: b\n\n", []string{"[data=a id=7]", "[data=b (id=7)]"}, io.EOF},
		{"retry", "retry: 1500\ndata: a\n\n", []string{"[data=a retry=1.5s]"}, io.EOF},
		{"retry 0", "retry:0\ndata: a\n\n", []string{"[data=a retry=0s]"}, io.EOF},
		{"retry with characters other than digits", "retry: 15a\nretry: -1\nretry: 1.5\nretry\nretry:  1\ndata: a\n\n", []string{"[data=a]"}, io.EOF},
		{"retry over the maximum", "retry: 99999999999999999999999\ndata: a\n\n", []string{"[data=a retry=876000h0m0s]"}, io.EOF},
		{"comments of the block", ": sent=1\nid: 1\n:x\ndata: 0\n\n", []string{":sent=1", ":x", "[data=0 id=1 comment=sent=1\nx]"}, io.EOF},
		{"a block of comments is not an event", ": keep-alive\n\n:\n\ndata: a\n\n", []string{":keep-alive", "[comment=keep-alive]", ":", "[comment=]", "[data=a]"}, io.EOF},
		{"blank lines", "\n\n\r\n\r\rdata: a\n\n\n\n", []string{"[data=a]"}, io.EOF},

		// The end of the stream inside a block.
		{"an incomplete line", "data: a\n\ndata: b", []string{"[data=a]"}, io.ErrUnexpectedEOF},
		{"an incomplete block", "data: a\n\ndata: b\n", []string{"[data=a]"}, io.ErrUnexpectedEOF},
		{"an incomplete comment", ": sent=", nil, io.ErrUnexpectedEOF},
		{"an id without its blank line", "id: 1\n", nil, io.ErrUnexpectedEOF},
		{"a name without its blank line", ": x\nevent\n", []string{":x"}, io.ErrUnexpectedEOF},
		{"an incomplete line after a comment", ": x\nretr", []string{":x"}, io.ErrUnexpectedEOF},
		{"a tail of comments is part of no event", "data: a\n\n: sent=1\n:\n", []string{"[data=a]", ":sent=1", ":"}, io.EOF},
		{"a tail of retry is part of no event", "data: a\n\nretry: 1\n", []string{"[data=a]"}, io.EOF},
		{"a tail of unknown lines is part of no event", "data: a\n\nDATA: b\nfoo\nid: \x00\n", []string{"[data=a]"}, io.EOF},

		// Parts other than events.
		{"blank lines are not blocks", "\n\n\r\ndata\n\n\n\r", []string{"[data=]"}, io.EOF},
		{"only a retry", "retry: 20\r\n\r\n", []string{"[retry=20ms]"}, io.EOF},
		{"only an unknown field", "foo: 1\n\n", []string{"[]"}, io.EOF},
		{"all fields", ": sent=1\nid: 2\nevent: x\nretry: 3\n:y\ndata: z\n\n", []string{":sent=1", ":y", "[data=z name=x id=2 retry=3ms comment=sent=1\ny]"}, io.EOF},
		{"heartbeats of Mercure", ":\n:\nid: urn:uuid:1\ndata: a\n\n:\n:\n", []string{":", ":", "[data=a id=urn:uuid:1 comment=\n]", ":", ":"}, io.EOF},
		{"two spaces after the colon", ":  x\n", []string{": x"}, io.EOF},
		{"a BOM before a comment", "\xEF\xBB\xBF: x\r\r", []string{":x", "[comment=x]"}, io.EOF},
		{"a BOM and a blank line", "\xEF\xBB\xBF\n: x\n", []string{":x"}, io.EOF}, // the BOM must not precede the comment
		{"an incomplete comment after another", ":\n: pi", []string{":"}, io.ErrUnexpectedEOF},
		{"an incomplete block after a comment", ":\ndata: a\n", []string{":"}, io.ErrUnexpectedEOF},
		{"a comment inside an incomplete block", "id: 1\n:\n", []string{":"}, io.ErrUnexpectedEOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, reader := range map[string]func(io.Reader) io.Reader{
				"all at once": func(r io.Reader) io.Reader { return r }, "one byte at a time": iotest.OneByteReader, "error with the last bytes": iotest.DataErrReader,
			} {
				all, events, err := parts(New(reader(strings.NewReader(tt.in))))
				assert.Equal(t, tt.want, all, name)
				assert.Equal(t, tt.err, err, name)
				next, err := parseAll(New(reader(strings.NewReader(tt.in))))
				assert.Equal(t, events, next, "Next must return the events of NextPart, %s", name)
				assert.Equal(t, tt.err, err, name)
			}
		})
	}
}

// An event is dispatched at the first byte of the line end of its blank line.
func TestParserDoesNotWaitForLFAfterCR(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	p := New(r)
	for _, part := range []string{"data: a\r\n\r", "\ndata: b\r\n\r"} {
		go func() { _, _ = io.WriteString(w, part) }()
		var e Event
		require.NoError(t, p.Next(&e))
	}
}

func TestParserLimits(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"line":         strings.Repeat("x", 101),
		"data":         strings.Repeat("data: 0123456789\n", 11),
		"unknown name": "data: ok\n" + strings.Repeat("y", 200) + ": z\n\n",
	} {
		p := New(nil)
		p.Reset(iotest.HalfReader(strings.NewReader(in)), 100)
		_, err := parseAll(p)
		require.ErrorIs(t, err, ErrTooLong, name)
		require.ErrorContains(t, err, "100 bytes", name)
		p.Reset(strings.NewReader(in), 100)
		_, _, err = parts(p)
		require.ErrorIs(t, err, ErrTooLong, "NextPart: %s", name)
	}
	p := New(nil)
	p.Reset(strings.NewReader("data: "+strings.Repeat("x", 94)+"\n\n"), 100)
	events, err := parseAll(p)
	require.Equal(t, io.EOF, err)
	require.Len(t, events, 1)
}

func TestParserContinuesAfterAReadError(t *testing.T) {
	t.Parallel()
	p := New(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("data: a\ndata: b\n\n"))))
	var e Event
	require.ErrorIs(t, p.Next(&e), iotest.ErrTimeout)
	require.NoError(t, p.Next(&e))
	require.Equal(t, "a\nb", string(e.Data))
}

func TestParserResetKeepsIDAndReconnectionTime(t *testing.T) {
	t.Parallel()
	p := New(strings.NewReader("retry: 20\nid: 4\n\nid: 5\ndata: half"))
	_, known := p.ReconnectionTime()
	require.False(t, known)
	_, err := parseAll(p)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	p.Release()
	p.Reset(strings.NewReader("data: b\n\n"), 0)
	events, err := parseAll(p)
	require.Equal(t, io.EOF, err)
	require.Equal(t, []receivedEvent{{ID: "4", Data: "b"}}, events)
	retry, known := p.ReconnectionTime()
	require.True(t, known)
	require.Equal(t, 20*time.Millisecond, retry)
	require.Equal(t, "4", string(p.LastEventID()))
}

func TestParserRejectsEmptyReads(t *testing.T) {
	t.Parallel()
	_, err := parseAll(New(iotest.ErrReader(nil)))
	require.ErrorIs(t, err, io.ErrNoProgress)
}

// A byte order mark, or a part of it, may arrive in a read of its own, before a line over the limit.
func TestLongLineAfterAByteOrderMark(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]error{"data: 123456789": ErrTooLong, ": 123456789": nil} {
		text := byteOrderMark + line + "\n\ndata: 1\n\n"
		for at := range 2 * len(byteOrderMark) {
			p := new(Parser)
			p.Reset(io.MultiReader(strings.NewReader(text[:at]), strings.NewReader(text[at:])), 8)
			require.ErrorIs(t, p.Next(new(Event)), want, "%s, split at %d", line, at)
		}
	}
}

// Clients ignore comments (section 9.2.6), so no comment is too long.
func TestHugeCommentsAreReadAsEmptyComments(t *testing.T) {
	t.Parallel()
	huge := ":" + strings.Repeat("x", 300)
	in := "\xEF\xBB\xBF" + huge + "\r\n" + huge + "\r" + huge + "\n: a\nid: 1\ndata: 0\n\n" +
		"data: 1\n" + strings.Repeat(": 0123456789\n", 11) + ": z\n\n" + huge
	want := []receivedEvent{{ID: "1", HasID: true, Data: "0", Comment: "\n\n\na"}, {ID: "1", Data: "1", Comment: strings.Repeat("0123456789\n", 2) + "z"}}
	for name, r := range map[string]func() io.Reader{
		"all at once":       func() io.Reader { return strings.NewReader(in) },
		"one byte per read": func() io.Reader { return iotest.OneByteReader(strings.NewReader(in)) },
	} {
		p := New(nil)
		p.Reset(r(), 100)
		events, err := parseAll(p)
		require.Equal(t, io.ErrUnexpectedEOF, err, name)
		require.Equal(t, want, events, name)
		require.LessOrEqual(t, cap(p.line), smallBuffer, name)

		p = New(nil)
		p.Reset(r(), 100)
		all, _, err := parts(p)
		require.Equal(t, io.ErrUnexpectedEOF, err, name)
		require.Equal(t, []string{":", ":", ":", ":a"}, all[:4], "a heartbeat of any length must be reported: %s", name)
	}
}
