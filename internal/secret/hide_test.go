package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHideReplacesASecretInEveryEncoding(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Bearer a"b c/d!`:             "Bearer {token}",
		`{"t":"a\"b c/d!"}`:           `{"t":"{token}"}`,
		`/sub?t=a%22b%20c%2Fd%21&x=1`: `/sub?t={token}&x=1`,
		`t=a%22b+c%2Fd%21`:            `t={token}`,
		`/sub?t=a%22b%20c%2fd%21&x=1`: `/sub?t={token}&x=1`,
		`{"t":"a\"b c\/d!"}`:          `{"t":"{token}"}`,
		`{"t":"a\u0022b c/d!"}`:       `{"t":"{token}"}`,
		`another`:                     `another`,
	} {
		require.Equal(t, want, Hide(text, "", `a"b c/d!`), text)
	}
	require.Equal(t, `{"t":"{token}"}`, Hide(`{"t":"a\u0026b\u003c+"}`, "a&b<+"))
	require.Equal(t, `{"t":"{token}"}`, Hide(`{"t":"a\u0026b\u003C\u002B"}`, "a&b<+"))
	require.Equal(t, "a1b", Hide("a1b", "1"), "a short token must not be replaced")
}

// An error response may be shortened inside a token before Hide receives it.
func TestHideReplacesTheStartOfAShortenedToken(t *testing.T) {
	t.Parallel()
	const token = "s3cr3t-subscriber"
	for text, want := range map[string]string{
		"who is " + token[:9] + "…":                       "who is {token}…",
		"who is " + token[:9] + "… (through the proxy x)": "who is {token}… (through the proxy x)",
		"who is " + token + "…":                           "who is {token}…",
		"who is " + token[:3] + "…":                       "who is " + token[:3] + "…",
		"who is " + token[:9] + "x…":                      "who is " + token[:9] + "x…",
		"…":                                               "…",
	} {
		require.Equal(t, want, Hide(text, token), text)
	}
}

// A host name and a content coding may be converted to lower case.
func TestLongSecretIsHiddenInAnyCase(t *testing.T) {
	t.Parallel()
	const mixed = "aB3dE5gH7jK9mN"
	for text, want := range map[string]string{
		"http://ab3de5gh7jk9mn.example/":               "http://{token}.example/",
		"content coding AB3DE5GH7JK9MN is unknown":     "content coding {token} is unknown",
		`{"t":"\u0061B3dE5gH7jK9mN"} %41b3de5gh7jk9mn`: `{"t":"{token}"} {token}`,
		mixed: "{token}",
	} {
		require.Equal(t, want, Hide(text, mixed), text)
	}
	require.Equal(t, "short-one", Hide("short-one", "Short-One"))
	require.Equal(t, "[redacted].example", Environment([]string{"BACKEND_TOKEN=" + mixed}).String("ab3de5gh7jk9mn.example"))
}

func TestErrorHidesTokensOfTheEnvironment(t *testing.T) {
	const token = "0f9e8d7c6b5a49382716"
	t.Setenv("SUBSCRIBE_TOKEN", token)
	require.NoError(t, Error(nil))
	err := Error(fmt.Errorf("malformed MIME header %q: %w", "x"+token, fs.ErrNotExist))
	require.NotContains(t, err.Error(), token)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "malformed MIME header")
}

// A remedy shows where a token belongs.
func TestErrorKeepsPlaceholders(t *testing.T) {
	for text, want := range map[string]string{
		"pass --header 'Authorization: Bearer {token}' with SUBSCRIBE_TOKEN set": "pass --header 'Authorization: Bearer {token}' with SUBSCRIBE_TOKEN set",
		"pass --header 'Authorization: Basic …'":                                 "pass --header 'Authorization: Basic …'",
		"sent 'Authorization: Bearer {token}abc'":                                "sent 'Authorization: [redacted]'",
	} {
		require.EqualError(t, Error(errors.New(text)), want)
	}
}

// In quadratic time, this many bytes would take an hour.
func TestLongSeriesOfEscapesNeedsLinearTime(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"SUBSCRIBE_TOKEN=0f9e8d7c6b5a49382716"})
	for _, escape := range []string{`\`, "%5C", "%25"} {
		text := append(bytes.Repeat([]byte(escape), 1<<18), "0f9e8d7c6b5a49382716"...)
		hidden := v.Replace(text, "{token}")
		require.True(t, bytes.HasSuffix(hidden, []byte("{token}")), escape)
	}
}
