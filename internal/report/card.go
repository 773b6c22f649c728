package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func (s *pageBuilder) card() Section {
	p := s.v.Plan
	target := p.BackendURL
	if s.OneClock {
		target += " (started by soak on this machine)"
	}
	target += s.v.RedirectText()
	reconnect := "no: a lost stream is not reopened"
	if p.Reconnect {
		reconnect = "yes, without resuming"
		if service := &s.v.Service; service.Resumes() {
			reconnect = "yes, with " + cmp.Or(service.Resume, "Last-Event-ID")
		}
		outage := "any length"
		if limit, ok := p.MaxOutage(); ok {
			outage = "at most " + format.Duration(limit)
		}
		reconnect += ", after an outage of " + outage
	}
	clients := p.ClientID(0)
	if p.Connections > 1 {
		clients += " … " + p.ClientID(p.Connections-1)
	}
	plan := Facts(
		"plan", fmt.Sprintf("%s for %s, %s", format.Count(p.Connections, "stream"), format.Duration(p.Hold()), verdict.IntervalText(&p, &s.v.Service)),
		"service", s.service(),
		"runners", fmt.Sprintf("%s, up to %s per virtual user", format.Count(p.Runners, "k6 process"), format.Count(p.ConnectionsPerVU, "stream")),
		"target", target, "through the proxy", strings.Join(s.Proxies, ", "), "cores", s.Cores,
		"clients", clients,
		"clients reconnect", reconnect,
		"late means", fmt.Sprintf("over %d ms", p.LateMS),
		"started", format.UnixTime(s.v.StartedUnix),
		"ended", endTime(s.v),
		"command", Shell(s.Command...),
		"compressed", s.v.CompressionText(), "HTTP/2", s.v.HTTP2Text(), "control group", s.v.Control.Line(),
	)
	plan.Caption = "Run"
	return Section{ID: "card", Title: "Run", Tables: []Table{plan, s.environment()}}
}

func (s *pageBuilder) environment() Table {
	m := s.Machine
	t := Facts(
		"script", s.script(),
		"soak", s.Version, "commit", s.Commit, "k6", K6Versions(s.v), "Go", s.Go, "backend", s.Backend, "nginx", s.Nginx,
		"machine", m.Name, "system", m.System, "kernel", m.Kernel,
		"CPU", ifKnown(m.Cores, strings.TrimSpace(format.Count(m.Cores, "core")+" "+m.CPU)), "memory", ifKnown(m.Memory, format.MiB(mib(m.Memory))),
		"open files", ifKnown(s.Limits.Files, format.Thousands(s.Limits.Files)+" per process"),
		"ephemeral ports", ifKnown(s.Limits.Ports, format.Thousands(s.Limits.Ports)+" per target address"),
		"accept queue", ifKnown(s.Limits.Backlog, format.Thousands(s.Limits.Backlog)+" (net.core.somaxconn)"),
		"resources from", s.source(),
	)
	t.Caption = "Versions, host and limits"
	return t
}

// ifKnown returns text about n; "" if n is 0, which means that n is unknown.
func ifKnown[N int | uint64](n N, text string) string {
	if n <= 0 {
		return ""
	}
	return text
}

func (s *pageBuilder) script() string {
	if len(s.Merged.Runners) == 0 {
		return ""
	}
	r := s.Merged.Runners[0]
	return strings.TrimSpace(fmt.Sprintf("%s (sha256 %.12s)", r.Script, r.ScriptHash))
}

// sampleInterval returns the time between samples, which depends on the suite.
func (s *pageBuilder) sampleInterval() string {
	interval := resources.Interval
	if n := len(s.Samples); n > 1 {
		gaps := make([]int64, 0, n-1)
		for i := 1; i < n; i++ {
			gaps = append(gaps, s.Samples[i].Unix-s.Samples[i-1].Unix)
		}
		slices.Sort(gaps)
		interval = time.Duration(gaps[len(gaps)/2]) * time.Second // the median: the last sample of a run is taken early
	}
	return format.Duration(interval)
}

func (s *pageBuilder) source() string {
	switch {
	case s.ResourcesFrom != "":
		return "Prometheus at " + s.ResourcesFrom
	case len(s.Samples) == 0:
		return "none: neither soak nor Prometheus observed the target"
	case s.series.backendRSS == nil:
		return "soak itself, every " + s.sampleInterval() + ", on this machine; the metrics of the target were not recorded"
	case s.series.nginxRSS == nil:
		return "soak itself, every " + s.sampleInterval() + ", from the backend's /metrics and this machine's /proc"
	}
	return "soak itself, every " + s.sampleInterval() + ", from the backend's /metrics, the processes of nginx and this machine's /proc"
}
