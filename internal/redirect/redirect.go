// Package redirect decides which redirects a client follows. It is the rule of runners, probe and trial.
//
// A redirect within one origin is followed. One to another origin is refused by default: the service under test could
// otherwise send the load, and the tokens of its users, to a third party. Where the user allows it, the other origin gets
// no header of the request's author, no body and no Referer.
package redirect

import (
	"fmt"
	"net/url"
	"strings"
)

// Check reports whether a redirect leads to another origin. The error says why it is not followed: follow is false, or
// the request has a body, which a token may be in.
func Check(from, to *url.URL, follow, hasBody bool) (crosses bool, err error) {
	other := Origin(to)
	switch {
	case other == Origin(from):
		return false, nil
	case !follow:
		return true, fmt.Errorf("%s is another origin; pass --follow-redirects to allow it", other)
	case hasBody:
		return true, fmt.Errorf("%s is another origin, which gets no request with a body; use it as the target", other)
	}
	return true, nil
}

// Origin returns the ASCII origin of a URL: scheme, host, and the port unless it is the scheme's default (HTML standard,
// section 7.1.1).
func Origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || port == defaultPorts[u.Scheme] {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return (&url.URL{Scheme: u.Scheme, Host: host}).String() // which escapes what is not ASCII
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}
