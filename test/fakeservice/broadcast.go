package fakeservice

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Values of ServiceSpec.Slow: the effect of a broadcast on a client that does not read.
const (
	SlowCut  = "cut"  // disconnects the client
	SlowDrop = "drop" // drops the message
	SlowKeep = "keep" // queues up to 4096 messages, and then waits like SlowWait
	SlowWait = "wait" // makes the publisher wait until the client reads
	SlowLose = "lose" // like SlowCut, but the client whose id ends in -1 also misses one message
)

const (
	broadcastKiB = 60 // nominal size of a broadcast in KiB
	queueSize    = 8  // maximum number of broadcasts queued for a client, except with SlowKeep
)

func (s *Service) queuedBytes() (n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for st := range s.inboxes {
		n += len(st.inbox) * broadcastKiB << 10
	}
	return n
}

// broadcast sends an event to all streams. It responds with 404 if the service does not support broadcasts.
func (s *Service) broadcast(w http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	if s.Slow == "" || err != nil {
		http.NotFound(w, r)
		return
	}
	time.Sleep(s.Stamp)
	text := fmt.Sprintf(": sent=%d%[2]sevent: %[3]s%[2]sdata: %[4]s%[2]s%[2]s", time.Now().Add(min(s.Stamp, 0)).UnixMicro(), s.Lines, r.URL.Query().Get("event"), payload)
	loses := s.Slow == SlowLose && strings.Contains(string(payload[:min(40, len(payload))]), " 5 ")
	s.Mu.Lock()
	all := make([]*noopStream, 0, len(s.inboxes))
	for st := range s.inboxes {
		all = append(all, st)
	}
	s.broadcasts++
	number := s.broadcasts
	s.Mu.Unlock()
	for _, st := range all {
		if loses && strings.HasSuffix(st.client.ID, "-1") {
			continue
		}
		text := text
		if s.Copies != nil {
			text = strings.Repeat(text, s.Copies(st.client.ID, number))
		}
		select {
		case st.inbox <- text:
		default:
			s.handleFullQueue(r, st, text)
		}
	}
	fmt.Fprintf(w, "{\"delivered\":%d}\n", len(all))
}

func (s *Service) handleFullQueue(r *http.Request, st *noopStream, text string) {
	switch s.Slow {
	case SlowWait, SlowKeep:
		select {
		case st.inbox <- text:
		case <-st.ClientDone:
		case <-r.Context().Done():
		}
	case SlowCut, SlowLose:
		s.Mu.Lock()
		delete(s.inboxes, st)
		s.Mu.Unlock()
		close(st.cut)
		_ = st.conn.SetWriteDeadline(time.Now())
	}
}

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

// tcpUserTimeout is TCP_USER_TIMEOUT of Linux, which package syscall does not have.
const tcpUserTimeout = 18

func (s *Service) setAckTimeout(ctx context.Context, c net.Conn) context.Context {
	tcp, ok := c.(*net.TCPConn)
	if !ok || s.AckTimeout == 0 {
		return ctx
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(s.AckTimeout.Milliseconds()))
		})
	}
	return ctx
}
