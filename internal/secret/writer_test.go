package secret

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// written is text as a Writer leaves it that gets it in parts of a size.
func written(t *testing.T, v *Values, text string, size int) string {
	t.Helper()
	var out bytes.Buffer
	w := v.Writer(&out)
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		_, err := io.WriteString(w, rest[:n])
		require.NoError(t, err)
		rest = rest[n:]
	}
	require.NoError(t, w.Close())
	require.Equal(t, w.Found, out.String() != text)
	return out.String()
}

func TestWriterReplacesASecretThatIsSplitOverWrites(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token, "TLS_PRIVATE_KEY=-----BEGIN-----\nabcdefgh\n-----END-----", "SHORT_TOKEN=short-one"})
	wrapped := base64.StdEncoding.EncodeToString([]byte("Basic " + token))
	for _, text := range []string{
		"ready\n" + token + "\ndone\n",
		"ready\n" + token[:10] + "\n" + token[10:] + "\ndone\n",
		"x" + token[:10] + "\r\n" + token[10:] + token + "\n",
		wrapped[:20] + "\n" + wrapped[20:] + "\n",
		"-----BEGIN-----\nabcdefgh\n-----END-----\n",
		`-----BEGIN-----\nabcdefgh\n-----END-----`,
		"Authorization: Bearer of-somebody-else\nshort-one short-ones\n",
		strings.ReplaceAll(token, "c", `\u0063`) + "\n",
		strings.ReplaceAll(token, "c", `%2563`) + "\x1b[31m",
		"no secret\n\n% & \\ \n",
	} {
		want, _ := v.Clean([]byte(text))
		for size := 1; size <= len(text); size++ {
			require.Equal(t, string(want), written(t, v, text, size), "in parts of %d: %q", size, text)
		}
	}
}

func TestWriterCleansLongLinesInParts(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token})
	var line strings.Builder
	for n := 0; line.Len() < 4*longestLine; n++ {
		fmt.Fprintf(&line, `{"n": %d, "url": "http://me:pass-%d@host/?token=%s", "%s": "%s"},`, n, n, token, strings.Repeat("ab ", n%4000), token)
	}
	want, _ := v.Clean([]byte(line.String()))
	require.Equal(t, string(want), written(t, v, line.String(), 100_000))
}

// A secret that no part may end in has no bound: the whole part is replaced.
func TestWriterBoundsItsMemory(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token})
	for _, piece := range []string{"a", "a\n", "%", `\`, "&#", token, "Cookie: ", "\n"} {
		w := v.Writer(io.Discard)
		most := 0
		for range 20 {
			_, err := io.WriteString(w, strings.Repeat(piece, 32<<10/len(piece)))
			require.NoError(t, err)
			most = max(most, len(w.rest))
		}
		require.LessOrEqual(t, most, longestLine+4*context, "%q", piece)
		require.NoError(t, w.Close())
	}
}

func TestLeftInFindsASecretAcrossParts(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token})
	for before := longestLine - 40; before < longestLine+4; before++ {
		left, err := v.LeftIn(strings.NewReader(strings.Repeat("x", before) + token + strings.Repeat("x", 100)))
		require.NoError(t, err)
		require.Equal(t, "BACKEND_TOKEN", left)
	}
	left, err := v.LeftIn(strings.NewReader(strings.Repeat("x", 3*longestLine)))
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = v.LeftIn(iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}
