package service

import (
	"strconv"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// MatchesBackend reports whether the backend of this repository implements the protocol of the service. A target
// with this protocol may also have a version, a ledger, broadcasts and a gauge of its open streams.
func (s *Service) MatchesBackend() bool { return s.Name == plan.NoopService }

// BuiltIn returns the description of a service that is part of this program: noop. An empty name means noop, too. ok is
// false for any other name.
func BuiltIn(name string, interval time.Duration) (s *Service, ok bool) {
	if name != "" && name != plan.NoopService {
		return nil, false
	}
	return Noop(interval), true
}

// Noop returns the description of the default service, which sends one noop per interval (at least 1 ms). The module
// load-tests/services/noop.js is the same description for scripts.
func Noop(interval time.Duration) *Service {
	s, err := Parse([]byte(`{
		"name": "noop", "token": "BACKEND_TOKEN",
		"connect": { "url": "{base}/event/connect?id={id}", "headers": { "Authorization": "Bearer {token}" } },
		"message": { "noun": "noop", "event": "message", "data": "0", "seq": "id", "sentAt": "comment:^ *sent=([0-9]+) *$", "per": "stream",
			"every": ` + strconv.FormatFloat(max(interval, time.Millisecond).Seconds(), 'f', -1, 64) + ` },
		"end": { "by": "request", "method": "DELETE", "url": "{base}/event/forcedisconnect?id={id}",
			"headers": { "Authorization": "Bearer {token}" }, "ok": [200] },
		"resume": { "by": "header" }
	}`))
	if err != nil {
		panic(err) // the text is constant, apart from the interval
	}
	return s
}
