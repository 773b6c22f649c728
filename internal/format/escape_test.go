package format

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEscapeLeavesNoControlCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, ümlaut, 日本\n\tline":  "plain, ümlaut, 日本\n\tline",
		"\x1b]0;title\x07":           `\u001b]0;title\u0007`,
		"\u009b31m \u009d":           `\u009b31m \u009d`,
		"\u202egnp.exe\u2066":        `\u202egnp.exe\u2066`,
		"a\rb\x7f":                   `a\u000db\u007f`,
		"\U000e0041":                 `\udb40\udc41`,
		"\U0001f469\u200d\U0001f4bb": "\U0001f469\u200d\U0001f4bb",
	} {
		require.Equal(t, want, Escape(text))
		var out bytes.Buffer
		_, err := NewEscaper(&out).Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, out.String())
	}
}

// Text that is written byte by byte is escaped like the complete text, and escaped JSON remains valid JSON.
func TestEscaperAcceptsSplitCharacters(t *testing.T) {
	t.Parallel()
	const text = "{\"name\": \"é\u009b\u202e日\U0001f600\"}\n"
	var joined bytes.Buffer
	_, err := NewEscaper(&joined).Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, Escape(text), joined.String())
	var pieces bytes.Buffer
	w := NewEscaper(&pieces)
	for i := range len(text) {
		n, err := w.Write([]byte{text[i]})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.Equal(t, joined.String(), pieces.String())
	var v struct{ Name string }
	require.NoError(t, json.Unmarshal(joined.Bytes(), &v))
	require.Equal(t, "é\u009b\u202e日\U0001f600", v.Name)
}

func TestEscaperKeepsBytesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	_, err := NewEscaper(&out).Write([]byte("a\x9b31m\xffb\x1b"))
	require.NoError(t, err)
	require.Equal(t, "a\\u009b31m\xffb\\u001b", out.String())
}
