package eventstream

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var errNoData = errors.New("no data has arrived")

// A splitStream is a stream whose bytes arrive when the test sets arrived.
type splitStream struct {
	unread  string
	arrived int // number of bytes of unread that have arrived
}

func (s *splitStream) Read(p []byte) (int, error) {
	n := copy(p, s.unread[:min(s.arrived, len(s.unread))])
	if n == 0 {
		return 0, errNoData
	}
	s.unread, s.arrived = s.unread[n:], s.arrived-n
	return n, nil
}

// Parsers that share a block and a buffer return the same parts as parsers that do not.
func TestParsersShareABlock(t *testing.T) {
	t.Parallel()
	const streams = 40
	text := func(n int) string {
		return "\xEF\xBB\xBF: hello\r\nid: " + strings.Repeat("7", n) + "\ndata: a\r\ndata: " + strings.Repeat("b", n*n) + "\n\n" +
			": beat\n: beat\n" + "retry: 5\n\n" + "event: x\n" + ": " + strings.Repeat("c", 700) + "\nid\ndata\n\n" +
			strings.Repeat("data: "+strings.Repeat("d", n*2000)+"\n\n", 3) + "id: last\n\n"
	}
	var parsers [streams]Parser
	var sources [streams]splitStream
	var got [streams][]string
	var shared Block
	buf := make([]byte, 512)
	for i := range parsers {
		sources[i].unread = text(i)
		parsers[i].Reset(&sources[i], 0)
	}
	for open := streams; open > 0; {
		i := rand.N(streams)
		if sources[i].unread == "" {
			continue
		}
		p := &parsers[i]
		sources[i].arrived = rand.N(3000)
		p.Borrow(buf, &shared)
		for {
			part, err := p.NextPart(&shared)
			if err != nil {
				require.ErrorIs(t, err, errNoData)
				break
			}
			got[i] = append(got[i], describePart(part, &shared))
		}
		p.Return()
		if sources[i].unread == "" {
			open--
		}
	}
	for i := range parsers {
		var want []string
		var b Block
		p := New(strings.NewReader(text(i)))
		for part, err := p.NextPart(&b); err == nil; part, err = p.NextPart(&b) {
			want = append(want, describePart(part, &b))
		}
		require.Equal(t, want, got[i])
		require.Equal(t, "last", string(parsers[i].LastEventID()))
	}
}

func describePart(part Part, b *Block) string {
	if part == CommentLine {
		return ":" + string(b.Comment)
	}
	return strings.Join([]string{string(b.ID), string(b.Name), string(b.Data), string(b.Comment), b.Retry.String()}, "|")
}

// An event that arrives at once needs no allocation.
func TestWaitingParserHasNoBuffer(t *testing.T) {
	source := &splitStream{unread: strings.Repeat("id: 1\nevent: x\ndata: a\n: b\n\n", 2000)}
	event := len(source.unread) / 2000
	p, buf, b := New(source), make([]byte, 512), new(Block)
	read := func(bytes int) {
		source.arrived = bytes
		p.Borrow(buf, b)
		for {
			if err := p.Next(&b.Event); err != nil {
				require.ErrorIs(t, err, errNoData)
				break
			}
		}
		p.Return()
	}
	read(event)
	require.Zero(t, testing.AllocsPerRun(100, func() { read(event) }))
	require.Nil(t, p.blockState)
	read(event - 1)
	require.NotNil(t, p.blockState)
	require.False(t, p.isShared)
	read(1)
	require.Nil(t, p.blockState)
	p.Borrow(buf, b)
	source.arrived = 3
	require.ErrorIs(t, p.Next(&b.Event), errNoData)
	p.Release() // inside a line, which must not affect the next parser
	other := New(&splitStream{unread: "data: o\n\n", arrived: 9})
	other.Borrow(buf, b)
	require.NoError(t, other.Next(&b.Event))
	require.Equal(t, "o", string(b.Data))
}
