package eventstream

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var errNothingYet = errors.New("nothing has come yet")

// A splitStream is a stream of which one part arrives in each turn of its parser.
type splitStream struct {
	rest string
	left int // bytes that have come
}

func (s *splitStream) Read(p []byte) (int, error) {
	n := copy(p, s.rest[:min(s.left, len(s.rest))])
	if n == 0 {
		return 0, errNothingYet
	}
	s.rest, s.left = s.rest[n:], s.left-n
	return n, nil
}

// Streams that come in pieces cut anywhere, read in turns with one block and one buffer for all: what each tells is
// what it would alone.
func TestParsersShareABlock(t *testing.T) {
	t.Parallel()
	const streams = 40
	text := func(n int) string {
		return "\xEF\xBB\xBF: hello\r\nid: " + strings.Repeat("7", n) + "\ndata: a\r\ndata: " + strings.Repeat("b", n*n) + "\n\n" +
			": beat\n: beat\n" + "retry: 5\n\n" + "event: x\n" + ": " + strings.Repeat("c", 700) + "\nid\ndata\n\n" +
			strings.Repeat("data: "+strings.Repeat("d", n*2000)+"\n\n", 3) + "id: last\n\n"
	}
	var all [streams]Parser
	var from [streams]splitStream
	var told [streams][]string
	var shared Block
	buf := make([]byte, 512)
	for i := range all {
		from[i].rest = text(i)
		all[i].Reset(&from[i], 0)
	}
	for open := streams; open > 0; {
		i := rand.N(streams)
		if from[i].rest == "" {
			continue
		}
		p := &all[i]
		from[i].left = rand.N(3000)
		p.Borrow(buf, &shared)
		for {
			part, err := p.NextPart(&shared)
			if err != nil {
				require.ErrorIs(t, err, errNothingYet)
				break
			}
			told[i] = append(told[i], tell(part, &shared))
		}
		p.Return()
		if from[i].rest == "" {
			open--
		}
	}
	for i := range all {
		var want []string
		var b Block
		p := New(strings.NewReader(text(i)))
		for part, err := p.NextPart(&b); err == nil; part, err = p.NextPart(&b) {
			want = append(want, tell(part, &b))
		}
		require.Equal(t, want, told[i])
		require.Equal(t, "last", string(all[i].LastEventID()))
	}
}

func tell(part Part, b *Block) string {
	if part == CommentLine {
		return ":" + string(b.Comment)
	}
	return strings.Join([]string{string(b.ID), string(b.Name), string(b.Data), string(b.Comment), b.Retry.String()}, "|")
}

// A parser that waits for its next event keeps nothing of what it was lent, and what comes whole is read without an
// allocation.
func TestWaitingParserHasNoBuffer(t *testing.T) {
	from := &splitStream{rest: strings.Repeat("id: 1\nevent: x\ndata: a\n: b\n\n", 2000)}
	event := len(from.rest) / 2000
	p, buf, b := New(from), make([]byte, 512), new(Block)
	read := func(bytes int) {
		from.left = bytes
		p.Borrow(buf, b)
		for {
			if err := p.Next(&b.Event); err != nil {
				require.ErrorIs(t, err, errNothingYet)
				break
			}
		}
		p.Return()
	}
	read(event)
	require.Zero(t, testing.AllocsPerRun(100, func() { read(event) }))
	require.Nil(t, p.work)
	read(event - 1)
	require.NotNil(t, p.work)
	require.False(t, p.isShared)
	read(1)
	require.Nil(t, p.work)
	p.Borrow(buf, b)
	from.left = 3
	require.ErrorIs(t, p.Next(&b.Event), errNothingYet)
	p.Release() // in the middle of a line, of which the next parser sees nothing
	other := New(&splitStream{rest: "data: o\n\n", left: 9})
	other.Borrow(buf, b)
	require.NoError(t, other.Next(&b.Event))
	require.Equal(t, "o", string(b.Data))
}
