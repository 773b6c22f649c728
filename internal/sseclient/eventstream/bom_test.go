package eventstream

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A byte order mark, or a part of it, may arrive in a read of its own, before a line over the limit.
func TestLongLineAfterAByteOrderMark(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]error{"data: 123456789": ErrTooLong, ": 123456789": nil} {
		text := byteOrderMark + line + "\n\ndata: 1\n\n"
		for at := range 2 * len(byteOrderMark) {
			p := new(Parser)
			p.Reset(io.MultiReader(strings.NewReader(text[:at]), strings.NewReader(text[at:])), 8)
			var e Event
			require.ErrorIs(t, p.Next(&e), want, "%s, split at %d", line, at)
		}
	}
}
