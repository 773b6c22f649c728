package service

import (
	"strconv"
	"time"
)

// NoopName is the name of the service that a run without a description tests.
const NoopName = "noop"

// Noop returns the description of the original protocol with a noop every interval. load-tests/services/noop.js is the same one
// for scripts.
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
		panic(err) // the text is constant
	}
	return s
}
