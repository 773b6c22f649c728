package proxy

import (
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// FromEnvironmentTo returns the proxy that the environment selects for a URL, or nil for none. It returns an error if
// HTTP_PROXY or HTTPS_PROXY is not a URL, because net/http would then use no proxy or a wrong one.
func FromEnvironmentTo(target string) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, nil //nolint:nilerr // no request can be sent to an invalid URL; the caller reports that
	}
	if err := checkVariable(httpproxy.FromEnvironment(), u); err != nil {
		return nil, err
	}
	return Chooser(nil).For(u)
}

// checkVariable returns an error if the variable for target, HTTP_PROXY or HTTPS_PROXY, is not the URL of a proxy. It
// ignores the variable if NO_PROXY excludes target.
func checkVariable(config *httpproxy.Config, target *url.URL) error {
	variable, value := "HTTP_PROXY", config.HTTPProxy
	if target.Scheme == "https" {
		variable, value = "HTTPS_PROXY", config.HTTPSProxy
	}
	probe := httpproxy.Config{HTTPProxy: "http://any", HTTPSProxy: "http://any", NoProxy: config.NoProxy}
	if p, err := probe.ProxyFunc()(target); value == "" || p == nil || err != nil {
		return nil //nolint:nilerr // ProxyFunc fails only under CGI
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	if u, err := url.Parse(value); err != nil || u.Hostname() == "" {
		return fmt.Errorf("%s must be the URL of a proxy; write http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT "+
			"with a password escaped as in URLs (%%2F for /), or unset it", variable)
	}
	return nil
}
