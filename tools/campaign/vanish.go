package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// What the gauge of a service shows.
const (
	gaugeOpen   = "open"   // its streams
	gaugeTwice  = "twice"  // two for each, and some more
	gaugeOpened = "opened" // all that were ever open
	gaugeLeaky  = "leaky"  // its streams, and half of those that ended
	gaugeFixed  = "fixed"  // nothing of streams
)

// noticing is a service that gives a client up which acknowledges nothing for so long, and shows that on its gauge. Within
// so many seconds it has to: the rest of the run are 6 until clients vanish, and 5 at its end.
func noticing(after time.Duration, gauge string, within int, outcomes []verdict.Outcome, reason string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		streams("vanish", strike{}, outcomes)(r, sc)
		sc.Service.Nginx, sc.Service.Notices, sc.Service.Gauge = false, after, gauge
		sc.Args = []string{"--prefix", sc.Plan.Prefix, "--connections", "60", "--seconds", fmt.Sprint(within + 11), "--gauge", "campaign_streams", "--max-held-late", "-1"}
		sc.want.Reason = reason
	}
}

// metrics shows the gauge as Prometheus reads it.
func (s *service) metrics(w http.ResponseWriter, _ *http.Request) {
	opened, open := s.opened()
	value := map[string]int{
		gaugeOpen: open, gaugeTwice: 2*open + 3, gaugeOpened: opened, gaugeLeaky: (open + opened + 1) / 2, gaugeFixed: 7,
	}[s.Gauge]
	fmt.Fprintf(w, "# TYPE campaign_streams gauge\ncampaign_streams %d\n# TYPE campaign_kept_bytes gauge\ncampaign_kept_bytes %d\n", value, s.kept())
}

// notices has the kernel give up a connection whose client acknowledges nothing for so long.
func (s *service) notices(ctx context.Context, c net.Conn) context.Context {
	tcp, ok := c.(*net.TCPConn)
	if !ok || s.Notices == 0 {
		return ctx
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			setUserTimeout(fd, s.Notices)
		})
	}
	return ctx
}
