package sseclient

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"http://Host/a?b":            "http://host",
		"https://u:p@example.com:80": "https://example.com:80",
		"http://[::1]:8080/":         "http://[::1]:8080",
		"http://host:80/":            "http://host",
		"https://host:443":           "https://host",
		"https://host:80":            "https://host:80",
		"http://host:8080":           "http://host:8080",
		"http://host:":               "http://host",
		"http://me:secret@host:81":   "http://host:81",
		"http://[::1]:80/":           "http://[::1]",
		"http://a\u202eb/":           "http://a%E2%80%AEb",
	} {
		require.Equal(t, want, Origin(parse(t, raw)), raw)
	}
}

func TestOtherOriginsNeedPermission(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to        string
		follow, hasBody bool
		crosses         bool
		err             string
	}{
		{"http://a/x", "http://A:80/y", false, true, false, ""},
		{"http://a/x", "http://b/x", false, false, true, "http://b is another origin; pass --follow-redirects, or set followRedirects in a script"},
		{"http://a/x", "http://a:81/x", false, false, true, "http://a:81 is another origin; pass --follow-redirects, or set followRedirects in a script"},
		{"https://a/x", "http://a/x", false, false, true, "http://a is another origin; pass --follow-redirects, or set followRedirects in a script"},
		{"http://a/x", "http://b/x", true, false, true, ""},
		{"http://a/x", "http://b/x", true, true, true, "http://b is another origin, which gets no request with a body; use it as the target"},
	} {
		crosses, err := checkRedirect(parse(t, tt.from), parse(t, tt.to), tt.follow, tt.hasBody)
		require.Equal(t, tt.crosses, crosses, tt)
		if tt.err == "" {
			require.NoError(t, err, tt)
		} else {
			require.EqualError(t, err, tt.err)
		}
	}
}
