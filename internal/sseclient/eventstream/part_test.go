package eventstream

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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

// eventText returns a block in the notation of the tests: data=, name=, id= (in parentheses if an earlier block set the
// id), retry=, comment=.
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

// An endlessReader repeats a text. If maxBytes is positive, it limits the bytes per read.
type endlessReader struct {
	text     string
	at       int
	maxBytes int
}

func (r *endlessReader) Read(p []byte) (int, error) {
	if r.maxBytes > 0 && len(p) > r.maxBytes {
		p = p[:r.maxBytes]
	}
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func TestPartsAllocateNothing(t *testing.T) {
	for name, source := range map[string]*endlessReader{
		"small": {text: ":\n: ping\n\nevent: ping\n\nid: 12345\n\nretry: 10\n\n: sent=1\nid: 6\ndata: {\"seq\":1}\n\n"},
		"large": {text: "data: " + strings.Repeat("x", 64<<10) + "\n\n", maxBytes: 4 << 10},
	} {
		p := New(source)
		var b Block
		next := func() {
			if _, err := p.NextPart(&b); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			next()
		}
		require.Zero(t, testing.AllocsPerRun(500, next), name)
	}
}
