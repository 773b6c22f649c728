package proxy

import (
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// FromEnvironmentTo returns the proxy of the environment for a URL, nil for none. A variable that is not a URL is an
// error, because its user wants a proxy. net/http would use none, or another one.
func FromEnvironmentTo(target string) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, nil //nolint:nilerr // no request can be sent to it; the caller reports that
	}
	if err := check(httpproxy.FromEnvironment(), u); err != nil {
		return nil, err
	}
	return Chooser(nil).For(u)
}

func check(from *httpproxy.Config, target *url.URL) error {
	variable, value := "HTTP_PROXY", from.HTTPProxy
	if target.Scheme == "https" {
		variable, value = "HTTPS_PROXY", from.HTTPSProxy
	}
	config := httpproxy.Config{HTTPProxy: "http://any", HTTPSProxy: "http://any", NoProxy: from.NoProxy}
	if p, err := config.ProxyFunc()(target); value == "" || p == nil || err != nil {
		return nil //nolint:nilerr // it fails only under CGI
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	if u, err := url.Parse(value); err != nil || u.Hostname() == "" {
		return fmt.Errorf("%s must be the URL of a proxy; write http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT with a password escaped as in URLs (%%2F for /), or unset it", variable)
	}
	return nil
}
