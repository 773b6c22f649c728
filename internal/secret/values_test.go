package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const token = "0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d" // an output of openssl rand -hex 16

func TestLongValuesMatchInEveryContext(t *testing.T) {
	t.Parallel()
	for name, context := range map[string]string{
		"plain":                   "key is T.",
		"underscores":             "_T_",
		"a URL-encoded parameter": "x%3DT%26y",
		"a URL-encoded header":    "bearer%20T",
		"a line break in JSON":    `"ready\nT"`,
		"an ampersand in JSON":    `"a\u0026T\u0026b"`,
		"an equals sign in JSON":  `"a\u003dT"`,
		"JSON in JSON":            `"{\"a\":\"ready\\nT\"}"`,
		"a color":                 "\x1b[31mT\x1b[0m",
		"a color in JSON":         `\u001b[31mT\u001b[0m`,
		"a URL-encoded key":       "access_key%3AT",
		"adjacent letters":        "abcTdef",
		"an HTML entity":          "a&#61;T&amp;b",
	} {
		for _, secret := range []string{token, `pa/ss+wo"rd&<ü\nq=1`, "😀 emoji-password"} {
			v := Environment([]string{"GRAFANA_PASSWORD=" + secret})
			form := secret
			if strings.Contains(context, `"`) {
				encoded, err := json.Marshal(secret)
				require.NoError(t, err)
				form = string(encoded[1 : len(encoded)-1])
			}
			text := strings.ReplaceAll(context, "T", form)
			clean, found := v.Clean([]byte(text))
			assert.True(t, found, name)
			assert.Empty(t, v.FindRemaining(clean), name)
			assert.Equal(t, "GRAFANA_PASSWORD", v.FindRemaining([]byte(text)), name)
			assert.Equal(t, strings.ReplaceAll(context, "T", Redacted), string(v.Replace([]byte(text), Redacted)), "%s: %s", name, text)
		}
	}
}

func TestLongValuesMatchInEveryForm(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{token, `pa/ss+wo"rd&<ü\nq=1`, `twelve?>>?//`} {
		v := Environment([]string{"GRAFANA_PASSWORD=" + secret})
		queryEscaped := url.QueryEscape(secret)
		everyByte := ""
		for _, c := range []byte(secret) {
			everyByte += "%" + strings.ToLower(hex.EncodeToString([]byte{c}))
		}
		everyRune := ""
		for _, c := range secret {
			everyRune += `\u00` + hex.EncodeToString([]byte{byte(c)})
		}
		asJSON, err := json.Marshal(secret)
		require.NoError(t, err)
		nestedJSON, err := json.Marshal(string(asJSON))
		require.NoError(t, err)
		doublyNestedJSON, err := json.Marshal(string(nestedJSON))
		require.NoError(t, err)
		forms := map[string]string{
			"url": queryEscaped, "url twice": url.QueryEscape(queryEscaped), "url thrice": url.QueryEscape(url.QueryEscape(queryEscaped)),
			"path": url.PathEscape(secret), "every byte in a URL": everyByte, "every character in JSON": everyRune,
			"JSON": string(asJSON), "JSON in JSON": string(nestedJSON), "JSON in JSON in JSON": string(doublyNestedJSON),
			"PHP": strings.ReplaceAll(string(asJSON), "/", `\/`), "URL of JSON": url.QueryEscape(string(asJSON)),
			"hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))),
			"two lines": secret[:5] + "\n" + secret[5:], "two lines in JSON": string(asJSON[:6]) + `\r\n` + string(asJSON[6:]),
			"two colors": secret[:5] + "\x1b[0;1m" + secret[5:],
		}
		for _, prefix := range []string{"", "a", "ab", "abc"} {
			for _, suffix := range []string{"", "z", "yz"} {
				plain := []byte(prefix + secret + suffix)
				forms["base64 "+prefix+suffix] = base64.StdEncoding.EncodeToString(plain)
				forms["base64 of URLs "+prefix+suffix] = base64.RawURLEncoding.EncodeToString(plain)
				forms["base64 in a URL "+prefix+suffix] = url.QueryEscape(base64.StdEncoding.EncodeToString(plain))
				forms["base64 in JSON "+prefix+suffix] = strings.ReplaceAll(base64.StdEncoding.EncodeToString(plain), "/", `\/`)
			}
		}
		for name, form := range forms {
			text := []byte("x=" + form + ";")
			assert.Equal(t, "GRAFANA_PASSWORD", v.FindRemaining(text), "%s: %s", name, text)
			clean := v.Replace(text, Redacted)
			assert.Contains(t, string(clean), Redacted, name)
			assert.NotContains(t, string(clean), secret[len(secret)-6:], name)
			assert.Empty(t, v.FindRemaining(clean), name)
		}
		for _, other := range []string{
			"", "x", secret[:len(secret)-1], secret[1:], strings.Repeat("%25", 100), strings.Repeat(`\`, 100),
			"%", "%2", `\u00`, `\ud83d\u0041`, "&#;", "&#x;",
		} {
			assert.Equal(t, other, string(v.Replace([]byte(other), Redacted)))
		}
	}
}

// A short value inside a longer word is not replaced. An escape separates words.
func TestShortValuesMatchAsWords(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"BACKEND_TOKEN=s0ak", "OTHER_TOKEN=s0ak", "DB_PASS=v4lue-8c"})
	for text, want := range map[string]string{
		"s0ak": Redacted, "-s0ak_": "-[redacted]_", "s0akers": "s0akers", "as0ak": "as0ak", `\ns0ak`: `\n[redacted]`, "%2Fs0ak%2f": "%2F[redacted]%2f",
		"\x1b[31ms0ak\x1b[0m": "\x1b[31m[redacted]\x1b[0m", `\u0026s0ak`: `\u0026[redacted]`, "v4lue-8c s0ak s0ak": "[redacted] [redacted] [redacted]", "s0\nak": "s0\nak",
	} {
		assert.Equal(t, want, string(v.Replace([]byte(text), Redacted)), text)
		assert.Empty(t, v.FindRemaining([]byte(text)), "a value that matches only as a word must not prevent an archive")
	}
}

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
