package sseclient

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// checkRedirect reports whether a redirect leads to another origin, and returns an error if it must not be followed.
//
// A redirect within one origin is always followed. Without follow, a redirect to another origin is refused. The service
// under test therefore cannot send the load and the tokens of its users to a third party. With follow, the other origin
// gets no header of the service description and no Referer. A request with a body is still refused, because the body
// may contain a token.
func checkRedirect(from, to *url.URL, follow, hasBody bool) (crosses bool, err error) {
	origin := Origin(to)
	switch {
	case origin == Origin(from):
		return false, nil
	case !follow:
		return true, fmt.Errorf("%s is another origin; pass --follow-redirects, or set followRedirects in a script", origin)
	case hasBody:
		return true, fmt.Errorf("%s is another origin, which gets no request with a body; use it as the target", origin)
	}
	return true, nil
}

// Origin returns the ASCII origin of a URL: the scheme, the host, and the port unless it is the default port (HTML
// standard, section 7.1.1).
func Origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || port == proxy.DefaultPort(u.Scheme) {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return (&url.URL{Scheme: u.Scheme, Host: host}).String() // escapes characters that are not ASCII
}
