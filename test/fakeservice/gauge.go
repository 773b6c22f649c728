package fakeservice

import (
	"context"
	"fmt"
	"net"
	"net/http"
)

// Values of the gauge of a service.
const (
	GaugeOpen   = "open"   // its streams
	GaugeTwice  = "twice"  // two for each, and some more
	GaugeOpened = "opened" // all that were ever open
	GaugeLeaky  = "leaky"  // its streams, and half of those that ended
	GaugeFixed  = "fixed"  // nothing of streams
)

// metrics serves the gauge, and the metrics of streams and noops that our backend has.
func (s *Service) metrics(w http.ResponseWriter, _ *http.Request) {
	opened, open := s.DeviceCounts()
	value := map[string]int{
		GaugeOpen: open, GaugeTwice: 2*open + 3, GaugeOpened: opened, GaugeLeaky: (open + opened + 1) / 2, GaugeFixed: 7,
	}[s.Gauge]
	fmt.Fprintf(w, "# TYPE backend_streams_open gauge\nbackend_streams_open %d\n# TYPE backend_noops_sent_total counter\nbackend_noops_sent_total %d\n", open, s.sent.Load())
	fmt.Fprintf(w, "# TYPE campaign_streams gauge\ncampaign_streams %d\n# TYPE campaign_kept_bytes gauge\ncampaign_kept_bytes %d\n", value, s.queuedBytes())
}

// setAckTimeout makes the kernel close a connection whose client acknowledges nothing for that time.
func (s *Service) setAckTimeout(ctx context.Context, c net.Conn) context.Context {
	tcp, ok := c.(*net.TCPConn)
	if !ok || s.AckTimeout == 0 {
		return ctx
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			setUserTimeout(fd, s.AckTimeout)
		})
	}
	return ctx
}
