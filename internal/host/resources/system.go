package resources

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"
)

// System has the network traffic of a machine and the duration of a DNS lookup. Bytes are counted since boot.
type System struct {
	Received    uint64 `json:"host_network_received_bytes,omitempty"` // by all interfaces, loopback included
	Transmitted uint64 `json:"host_network_sent_bytes,omitempty"`
	// LookupMS is the duration of the latest lookup of the target's name; 0: none succeeded since the previous sample.
	LookupMS float64 `json:"dns_lookup_ms,omitempty"`
}

// Lookups measures how long this machine takes to resolve a name.
type Lookups struct {
	host string
	mu   sync.Mutex
	last time.Duration // of the latest lookup; 0: none succeeded since the last sample
}

// LookupsOf returns the Lookups for the host of a URL. It returns nil if the host is an IP address or is missing.
func LookupsOf(address string) *Lookups {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil {
		return nil
	}
	return &Lookups{host: u.Hostname()}
}

// Run resolves the name once per Interval until ctx ends. It records no time if the lookup fails.
func (l *Lookups) Run(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		start := time.Now()
		if _, err := net.DefaultResolver.LookupHost(ctx, l.host); err == nil {
			l.mu.Lock()
			l.last = time.Since(start)
			l.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// FromLookups moves the duration of the latest lookup from l to s, so that only one sample has it. l may be nil.
func (s *Sample) FromLookups(l *Lookups) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.LookupMS, l.last = float64(l.last.Microseconds())/1000, 0
}

// A SystemSummary has the maximum numbers of threads, the network bytes, and the DNS lookups of a run.
type SystemSummary struct {
	BackendThreads int     `json:"backend_threads_max,omitempty"`
	NginxThreads   int     `json:"nginx_threads_max,omitempty"`
	RunnerThreads  int     `json:"runner_threads_max,omitempty"` // threads of all runners together
	Received       uint64  `json:"host_network_received_bytes,omitempty"`
	Transmitted    uint64  `json:"host_network_sent_bytes,omitempty"`
	Lookups        int     `json:"dns_lookups,omitempty"`
	LookupP50      float64 `json:"dns_lookup_p50_ms,omitempty"`
	LookupMax      float64 `json:"dns_lookup_max_ms,omitempty"`
}

// SummarizeSystem returns the summary of samples. It leaves RunnerThreads at 0, because samples do not have it.
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
