package plan

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// serviceURL matches scheme, host, port and path of a service.
var serviceURL = regexp.MustCompile(`^(?i:(https?))://(\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f/?#@\\,:\[\]]+)(?::([0-9]{1,5}))?(/[^\x00-\x20\x7f?#\\]*)?\??#?$`)

var absoluteURL = regexp.MustCompile(`^(?i:https?)://[^/?#]`)

// NormalURL returns the canonical form of a service's URL: scheme and host in lower case, without trailing slashes,
// question mark or hash. name is the variable of the URL, for errors.
func NormalURL(name, text string) (string, error) {
	text = strings.TrimSpace(text)
	if !absoluteURL.MatchString(text) {
		return "", fmt.Errorf("%s must begin with http:// or https:// and name a host, got %q", name, text)
	}
	part := serviceURL.FindStringSubmatch(text)
	if part == nil {
		if strings.Trim(text[strings.IndexAny(text+"?", "?#"):], "?#") != "" || strings.Contains(text, "@") {
			return "", fmt.Errorf("%s must not have a query, a fragment, a user name or a password; set the token in BACKEND_TOKEN, or run `soak init` with the URL of an event stream", name)
		}
		return "", fmt.Errorf("%s must be the URL of a service, such as http://127.0.0.1:8080, got %q", name, text)
	}
	normal := strings.ToLower(part[1]) + "://" + strings.ToLower(part[2])
	if part[3] != "" {
		port, _ := strconv.Atoi(part[3]) // at most five digits, so Atoi does not fail
		if port < 1 || port > 65535 {
			return "", fmt.Errorf("%s must have a port from 1 to 65535, got %q", name, text)
		}
		normal += ":" + strconv.Itoa(port)
	}
	normal += strings.TrimRight(part[4], "/")
	if _, err := url.Parse(normal); err != nil {
		return "", fmt.Errorf("%s must be the URL of a service, such as http://127.0.0.1:8080, got %q", name, text)
	}
	return normal, nil
}

// NormalURLs returns the canonical form of URLs that are separated by commas; "" for an empty list.
func NormalURLs(name, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	all := strings.Split(text, ",")
	for i, text := range all {
		normal, err := NormalURL(name, text)
		if err != nil {
			return "", err
		}
		all[i] = normal
	}
	return strings.Join(all, ","), nil
}

// OnLoopback reports whether the host of each service is localhost or a loopback address. services are URLs.
func OnLoopback(services ...string) bool {
	return !slices.ContainsFunc(services, func(service string) bool {
		u, err := url.Parse(service)
		if err != nil {
			return true
		}
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() != "localhost" && !ip.IsLoopback()
	})
}
