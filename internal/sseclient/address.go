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

const schemeRule = "it must begin with http:// or https://"

// ErrScheme is the error for a URL whose scheme is neither http nor https. EventSource accepts such a URL, but each
// attempt to open a stream fails with a network error (HTML standard, section 9.2.3).
var ErrScheme = errors.New(schemeRule)

// ParseURL parses an absolute http or https URL, and converts the host name to ASCII (URL standard, section 3.5).
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
		return nil, fmt.Errorf("invalid URL %q: "+schemeRule, raw)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("invalid URL %q: %w", raw, ErrScheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("invalid URL %q: host is missing", raw)
	}
	if _, err := strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16); err != nil {
		return nil, fmt.Errorf("invalid URL %q: port must be at most 65535", raw)
	}
	if u.Host, err = asciiHost(u.Host); err != nil {
		return nil, fmt.Errorf("invalid URL %q: host must be a domain name or an IP address: %w", raw, err)
	}
	return u, nil
}

func resolveURL(base *url.URL, reference string) (*url.URL, error) {
	u, err := base.Parse(reference)
	if err != nil {
		return nil, err
	}
	return ParseURL(u.String())
}

// domainToASCII is the non-strict "domain to ASCII" operation of the URL standard (section 3.3).
var domainToASCII = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false),
	idna.BidiRule(), idna.CheckJoiners(true),
)

func asciiHost(host string) (string, error) {
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return host, nil
	}
	name, port, _ := strings.Cut(host, ":") // a host with non-ASCII characters is not an IPv6 address
	name, err := domainToASCII.ToASCII(name)
	switch {
	case err != nil:
		return "", err
	case name == "" || strings.ContainsAny(name, "\x00\t\n\r #%/:<>?@[\\]^|"):
		return "", fmt.Errorf("%q is not a domain name", name) // forbidden domain code points (section 3.5)
	}
	if port != "" {
		name += ":" + port
	}
	return name, nil
}
