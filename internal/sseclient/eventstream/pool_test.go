package eventstream

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A returned block does not change before the next call of its parser, even if other parsers use the same pool. A
// waiting parser has no pooled buffer.
func TestParsersDoNotMixSharedBuffers(t *testing.T) {
	textOf := func(i, size int) string { return strings.Repeat(string(rune('a'+i)), size) }
	for _, size := range []int{33 << 10, 64 << 10, 100 << 10} {
		var parsers [8]Parser
		var blocks [8]Block
		for i := range parsers {
			text := textOf(i, size)
			text = "data: x\n\n: " + text + "\ndata: " + text + "\n\ndata: " + text
			parsers[i].Reset(&splitStream{unread: text, arrived: len(text)}, DefaultLimit)
		}
		for step, want := range []Part{WholeBlock, CommentLine, WholeBlock} {
			for i := range parsers {
				part, err := parsers[i].NextPart(&blocks[i])
				require.NoError(t, err)
				require.Equal(t, want, part)
			}
			for i, b := range blocks {
				require.True(t, step == 0 || string(b.Comment) == textOf(i, size))
				require.True(t, step != 2 || string(b.Data) == textOf(i, size))
			}
		}
		for i := range parsers {
			_, err := parsers[i].NextPart(&blocks[i])
			require.ErrorIs(t, err, errNoData)
			require.Zero(t, cap(parsers[i].data)+cap(parsers[i].comment))
			parsers[i].r = strings.NewReader("\n\n: " + textOf(i, 10))
		}
		for i := range parsers {
			part, err := parsers[i].NextPart(&blocks[i])
			require.NoError(t, err)
			require.Equal(t, WholeBlock, part)
			require.Equal(t, textOf(i, size), string(blocks[i].Data))
			_, err = parsers[i].NextPart(&blocks[i])
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Less(t, cap(parsers[i].line)+cap(parsers[i].data)+cap(parsers[i].comment), largeBuffer)
		}
	}
}
