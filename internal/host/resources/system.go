package resources

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

// System is what else a machine shows of its load. Bytes count since it started.
type System struct {
	Received    uint64  `json:"host_network_received_bytes,omitempty"` // by all interfaces, loopback among them
	Transmitted uint64  `json:"host_network_sent_bytes,omitempty"`
	LookupMS    float64 `json:"dns_lookup_ms,omitempty"` // of the target's name, in the one sample that followed it
}

// readBytes adds up the interfaces, whatever stands behind them.
func (s *System) readBytes(fs procfs.FS) {
	counted, err := fs.NetDev()
	if err != nil {
		return
	}
	for _, line := range counted {
		s.Received += line.RxBytes
		s.Transmitted += line.TxBytes
	}
}

// Lookups time how long this machine takes to find the addresses of a name, as a client does that connects anew.
type Lookups struct {
	host string
	mu   sync.Mutex
	last time.Duration
}

// LookupsOf returns the lookups of the host of a URL, or nil for an IP address, which needs none.
func LookupsOf(address string) *Lookups {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil {
		return nil
	}
	return &Lookups{host: u.Hostname()}
}

// Run looks the name up Every, until ctx ends. A name that is not found has no time.
func (l *Lookups) Run(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		began := time.Now()
		if _, err := net.DefaultResolver.LookupHost(ctx, l.host); err == nil {
			l.mu.Lock()
			l.last = time.Since(began)
			l.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// FromLookups takes the last time of a lookup, once. l may be nil.
func (s *Sample) FromLookups(l *Lookups) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.LookupMS, l.last = float64(l.last.Microseconds())/1000, 0
}

// A SystemSummary is the System of a run: of threads the most, of bytes how many came and went, of lookups the median and the
// longest in milliseconds.
type SystemSummary struct {
	BackendThreads int     `json:"backend_threads_max,omitempty"`
	NginxThreads   int     `json:"nginx_threads_max,omitempty"`
	RunnerThreads  int     `json:"runner_threads_max,omitempty"` // of all runners together
	Received       uint64  `json:"host_network_received_bytes,omitempty"`
	Transmitted    uint64  `json:"host_network_sent_bytes,omitempty"`
	Lookups        int     `json:"dns_lookups,omitempty"`
	LookupP50      float64 `json:"dns_lookup_p50_ms,omitempty"`
	LookupMax      float64 `json:"dns_lookup_max_ms,omitempty"`
}

// SummarizeSystem sums samples up.
func SummarizeSystem(samples []Sample) (s SystemSummary) {
	var lookups []float64
	for i, now := range samples {
		s.BackendThreads, s.NginxThreads = max(s.BackendThreads, now.BackendThreads), max(s.NginxThreads, now.NginxThreads)
		if now.LookupMS > 0 {
			lookups = append(lookups, now.LookupMS)
		}
		if i == 0 {
			continue
		}
		if before := samples[i-1]; before.Received > 0 && now.Received >= before.Received && now.Transmitted >= before.Transmitted {
			s.Received += now.Received - before.Received
			s.Transmitted += now.Transmitted - before.Transmitted
		}
	}
	if s.Lookups = len(lookups); s.Lookups > 0 {
		slices.SortFunc(lookups, cmp.Compare)
		s.LookupP50, s.LookupMax = lookups[(len(lookups)-1)/2], lookups[len(lookups)-1]
	}
	return s
}
