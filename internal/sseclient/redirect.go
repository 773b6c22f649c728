package sseclient

import (
	"fmt"
	"net/url"
	"strings"
)

// checkRedirect reports whether a redirect leads to another origin. A redirect within one origin is followed. One to
// another origin is refused by default: otherwise, the service under test could send the load and the tokens of its
// users to a third party. If the user allows it, the other origin gets no header of the service description, no body
// and no Referer.
//
// checkRedirect returns an error if the redirect must not be followed: follow is false, or the request has a body,
// which may contain a token.
func checkRedirect(from, to *url.URL, follow, hasBody bool) (crosses bool, err error) {
	origin := Origin(to)
	switch {
	case origin == Origin(from):
		return false, nil
	case !follow:
		return true, fmt.Errorf("%s is another origin; pass --follow-redirects to allow it", origin)
	case hasBody:
		return true, fmt.Errorf("%s is another origin, which gets no request with a body; use it as the target", origin)
	}
	return true, nil
}

// Origin returns the ASCII origin of a URL: scheme, host, and the port unless it is the scheme's default (HTML
// standard, section 7.1.1).
func Origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || port == defaultPorts[u.Scheme] {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return (&url.URL{Scheme: u.Scheme, Host: host}).String() // escapes characters that are not ASCII
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}
