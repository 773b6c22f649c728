package fakeservice

import (
	"context"
	"fmt"
	"net"
	"net/http"
)

// Values that the gauge of a service can show.
const (
	GaugeOpen   = "open"   // the open streams
	GaugeTwice  = "twice"  // two for each open stream, plus three
	GaugeOpened = "opened" // the clients that have had a stream
	GaugeLeaky  = "leaky"  // the open streams, and half of the clients whose stream has ended
	GaugeFixed  = "fixed"  // a constant
)

// metrics serves the gauge, the queued bytes, and two metrics of bin/backend: open streams and sent noops.
func (s *Service) metrics(w http.ResponseWriter, _ *http.Request) {
	opened, open := s.ClientCounts()
	value := map[string]int{
		GaugeOpen: open, GaugeTwice: 2*open + 3, GaugeOpened: opened, GaugeLeaky: (open + opened + 1) / 2, GaugeFixed: 7,
	}[s.Gauge]
	fmt.Fprintf(w, "# TYPE backend_streams_open gauge\nbackend_streams_open %d\n# TYPE backend_noops_sent_total counter\nbackend_noops_sent_total %d\n", open, s.sent.Load())
	fmt.Fprintf(w, "# TYPE campaign_streams gauge\ncampaign_streams %d\n# TYPE campaign_kept_bytes gauge\ncampaign_kept_bytes %d\n", value, s.queuedBytes())
}

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
