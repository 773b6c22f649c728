package run

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/suite"
)

// findProxies records the proxies of the runners. It warns about each, because a proxy is part of the measured system.
func (s *session) findProxies() error {
	if s.Suite.Target.Kind == suite.MutualTLS { // its handshakes never use a proxy
		return nil
	}
	for _, target := range append(s.Plan.BackendURLs(), s.ClusterURL) {
		p, err := proxy.FromEnvironmentTo(target)
		if err != nil {
			return UsageError{err}
		}
		if p == nil || slices.Contains(s.record.Proxies, p.String()) {
			continue
		}
		s.record.Proxies = append(s.record.Proxies, p.String())
		host := target
		if u, err := url.Parse(target); err == nil {
			host = u.Host
		}
		s.warn(fmt.Sprintf("the runners connect to %s through the proxy %s (%s), whose delays, disconnects and refusals count as the service's; list the host in NO_PROXY to connect directly",
			host, p, p.Variable()))
	}
	return nil
}
