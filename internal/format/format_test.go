package format

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNumberFormats(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"0", "999", "1,000", "−1,234,567"}, []string{Thousands(0), Thousands(999), Thousands(1000), Thousands(-1_234_567)})
	require.Equal(t, []string{"1 runner", "2 runners", "1,200 processes"}, []string{Count(1, "runner"), Count(2, "runner"), Count(1200, "process")})
	require.Equal(t, []string{"1 stream was", "1200 streams were"}, []string{Plural(1, "stream was", "streams were"), Plural(1200, "stream was", "streams were")})
	require.Equal(t, []string{"0 MiB", "1023.0 MiB", "1.00 GiB"}, []string{Bytes(0), Bytes(1023 << 20), Bytes(1 << 30)})
	var times []string
	for _, d := range []time.Duration{0, 49_160 * time.Microsecond, 5 * time.Millisecond, 774_200 * time.Microsecond, time.Second, 1500 * time.Millisecond, 2720 * time.Millisecond,
		22_500 * time.Millisecond, time.Minute, 2 * time.Minute, time.Hour - 4600*time.Millisecond, time.Hour, 25*time.Hour + 5*time.Second} {
		times = append(times, Duration(d))
	}
	require.Equal(t, []string{"0 ms", "49.2 ms", "5 ms", "774 ms", "1 s", "1.5 s", "2.72 s", "22.5 s", "60 s", "2 min", "59 min 55 s", "1 h", "25 h 5 s"}, times)
	require.Equal(t, []string{"0.1 ms", "1.3 s", "10 s", "-2.5 ms"}, []string{Milliseconds(.1), Milliseconds(1300), Milliseconds(9999), Milliseconds(-2.5)})
	require.Equal(t, []string{"", "2023-11-14 22:13:20 UTC"}, []string{UnixTime(0), UnixTime(1.7e9)})
}

// A rounded value has a sign only if it is not 0.
func TestSmallChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v          float64
		unit, want string
	}{
		{-.004, "%", "> −0.01 %"}, {.004, "%", "< 0.01 %"}, {-.04, "%", "−0.04 %"}, {.04, "% of requests", "+0.04 %"}, {0, "%", "0.0 %"},
		{-.01, "ms", "0 ms"}, {.01, "ms", "0 ms"}, {-2.5, "ms", "−2.5 ms"}, {1e-6, "MiB", "0 MiB"}, {-1e-6, "MiB", "0 MiB"}, {-3, "", "−3"}, {3, "", "+3"},
	} {
		require.Equal(t, c.want, Change(c.v, c.unit), "%g %s", c.v, c.unit)
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b", Shorten(" a\n\x00\u200b b ", 6))
	require.Equal(t, "a b…", Shorten("a\nbéé", 6), "a character must not be split")
}

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
		"a\x9b31m\xffb\x1b":          "a\\u009b31m\xffb\\u001b",
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
