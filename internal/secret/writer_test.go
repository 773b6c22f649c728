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

func writeInParts(t *testing.T, v *Values, text string, size int) string {
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
			require.Equal(t, string(want), writeInParts(t, v, text, size), "in parts of %d: %q", size, text)
		}
	}
}

func TestWriterCleansLongLinesInParts(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token})
	var line strings.Builder
	for n := 0; line.Len() < 2*longestLine; n++ {
		fmt.Fprintf(&line, `{"n": %d, "url": "http://me:pass-%d@host/?token=%s", "%s": "%s"},`, n, n, token, strings.Repeat("ab ", n%4000), token)
	}
	want, _ := v.Clean([]byte(line.String()))
	require.Equal(t, string(want), writeInParts(t, v, line.String(), 100_000))
}

// A possible secret may have any length. The Writer replaces a part that it cannot split.
func TestWriterLimitsItsMemory(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token})
	for _, piece := range []string{"a", "a\n", "%", `\`, "&#", token, "Cookie: ", "\n"} {
		w := v.Writer(io.Discard)
		maxRest := 0
		for range 11 {
			_, err := io.WriteString(w, strings.Repeat(piece, 32<<10/len(piece)))
			require.NoError(t, err)
			maxRest = max(maxRest, len(w.rest))
		}
		require.LessOrEqual(t, maxRest, longestLine+4*context, "%q", piece)
		require.NoError(t, w.Close())
	}
}

func TestFindRemainingInFindsASecretAcrossParts(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token})
	for before := longestLine - 40; before < longestLine+4; before += 4 {
		name, err := v.FindRemainingIn(strings.NewReader(strings.Repeat("x", before) + token + strings.Repeat("x", 100)))
		require.NoError(t, err)
		require.Equal(t, "BACKEND_TOKEN", name)
	}
	name, err := v.FindRemainingIn(strings.NewReader(strings.Repeat("x", 3*longestLine)))
	require.NoError(t, err)
	require.Empty(t, name)
	_, err = v.FindRemainingIn(iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// A line of "Cookie: Cookie: …" cannot be split outside a possible secret.
func TestWriterReplacesASecretAcrossAHiddenPart(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token})
	limit := longestLine + v.overlap()
	for before := limit - len(token) + 8; before < limit; before += 16 {
		text := strings.Repeat("Cookie: ", limit/8+1)[:before] + token + strings.Repeat("Cookie: ", 8) + "\nend\n"
		out := writeInParts(t, v, text, limit+1)
		for i := range len(token) - 7 {
			require.NotContains(t, out, token[i:i+8], "the secret is at %d", before)
		}
		require.True(t, strings.HasPrefix(out, Redacted))
	}

	var out bytes.Buffer
	w := v.Writer(&out)
	for _, part := range []string{strings.Repeat("Cookie: ", limit/8+1), strings.Repeat("Cookie: ", limit/8), "\n", "end\n"} {
		_, err := io.WriteString(w, part)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.Equal(t, Redacted+"end\n", out.String())
}

// A TLS key may be longer than context.
func TestWriterAndFindRemainingInFindALongSecretAcrossParts(t *testing.T) {
	t.Parallel()
	var key strings.Builder
	for n := 0; key.Len() < 40<<10; n++ {
		fmt.Fprintf(&key, "%d-", n)
	}
	v := Environment([]string{"TLS_PRIVATE_KEY=" + key.String()})
	for _, before := range []int{100 << 10, longestLine - 20<<10, longestLine, 2*longestLine + 30<<10} {
		text := strings.Repeat("x ", before/2) + key.String() + strings.Repeat(" y", longestLine)
		want, _ := v.Clean([]byte(text))
		require.True(t, string(want) == writeInParts(t, v, text, 100_000), "the secret is at %d", before)
		name, err := v.FindRemainingIn(strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, "TLS_PRIVATE_KEY", name)
	}
}

func TestRestHidesTheStartOfASecret(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=" + token})
	for text, want := range map[string]string{
		"ready " + token[:20]:       "ready " + Redacted,
		"ready " + token[:4]:        "ready " + Redacted,
		"ready " + token[:3]:        "ready " + token[:3],
		"ready " + token:            "ready " + Redacted,
		token + " and " + token[:9]: Redacted + " and " + Redacted,
		"100% of C:\\soak":          "100% of C:\\soak",
	} {
		w := v.Writer(io.Discard)
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		require.Equal(t, want, string(w.Rest()), "%q", text)
	}
}
