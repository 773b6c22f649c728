package sseclient

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const schemes = "it must begin with http:// or https://"

// ErrScheme is the error of a URL whose scheme is neither http nor https. A stream to such a URL fails without another attempt: it is a
// valid URL, but a network error that no reconnect can change (HTML standard, section 9.2.3).
var ErrScheme = errors.New(schemes)

// ParseURL accepts an absolute http or https URL with a host, whose name it writes in ASCII, as the URL standard has it
// (section 3.5, host parsing): so it is dialed, looked up in k6's option hosts, sent, and part of the origin.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("invalid URL %q: %w", raw, err)
	case u.Scheme == "":
		return nil, fmt.Errorf("invalid URL %q: "+schemes, raw)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("invalid URL %q: %w", raw, ErrScheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("invalid URL %q: it has no host", raw)
	}
	if _, err := strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16); err != nil {
		return nil, fmt.Errorf("invalid URL %q: its port is over 65535", raw)
	}
	if u.Host, err = inASCII(u.Host); err != nil {
		return nil, fmt.Errorf("invalid URL %q: its host is not a domain name: %w", raw, err)
	}
	return u, nil
}

// domainToASCII is the URL standard's (section 3.3), not strict.
var domainToASCII = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.BidiRule(), idna.CheckJoiners(true))

// inASCII writes a host, with its port, in ASCII.
func inASCII(host string) (string, error) {
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return host, nil
	}
	name, port, _ := strings.Cut(host, ":") // no IPv6 address has other letters
	name, err := domainToASCII.ToASCII(name)
	switch {
	case err != nil:
		return "", err //nolint:wrapcheck // its caller says of what
	case name == "" || strings.ContainsAny(name, "\x00\t\n\r #%/:<>?@[\\]^|"):
		return "", fmt.Errorf("%q is none", name) // section 3.5, forbidden domain code points
	}
	if port != "" {
		name += ":" + port
	}
	return name, nil
}
