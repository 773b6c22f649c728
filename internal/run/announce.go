package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/suite"
)

func (s *session) announce() {
	p, load := s.Plan, format.Count(s.needs.VUs, "virtual user")
	if s.needs.Connections > 0 {
		load = format.Count(s.needs.Connections, "connection") + " at a time"
	}
	line := fmt.Sprintf("%s %s: %s on %s, up to %s, at most %s", p.Suite, p.TestID, s.Suite.Script[len(s.Suite.Script)-1],
		format.Count(p.Runners, "runner"), load, format.Duration(s.needs.Duration.Round(time.Second)))
	if s.Suite.Plan.BySettings {
		line = fmt.Sprintf("%s %s: %s for %s, %s, %s", s.Suite.Name, p.TestID, format.Count(p.Connections, "stream"),
			format.Duration(p.Hold()), s.intervalText(), format.Count(p.Runners, "runner"))
	}
	if s.runnerNumber > 0 {
		line += fmt.Sprintf(", only runner %d here", s.runnerNumber)
	}
	fmt.Fprintln(s.Stdout, line)
	s.printWarnings()
}

func (s *session) announceTarget() {
	p := s.Plan
	location := p.BackendURL + s.targetDescription()
	if len(s.record.Proxies) > 0 {
		location += " through the " + format.Form(len(s.record.Proxies), "proxy", "proxies") + " " + strings.Join(s.record.Proxies, ", ")
	}
	if p.Service != "" {
		location = p.ServiceName() + " at " + location
	}
	if s.cluster != nil {
		location += " and a cluster at " + s.ClusterURL
	}
	if s.record.Cores != "" {
		location += "; " + s.record.Cores
	}
	fmt.Fprintf(s.Stdout, "target %s\n", location)
	for _, a := range s.actions {
		fmt.Fprintf(s.Stdout, "at %s  %s: %s\n", format.Duration(a.At), a.Name, s.redactedAction(a).Command)
	}
}

func (s *session) targetDescription() string {
	if !s.targets.IsLocal() {
		return ""
	}
	line := "backend"
	if n := len(s.targets); n > 1 {
		line = fmt.Sprintf("%d backends", n)
	}
	switch {
	case s.Suite.Target.Kind == suite.Model:
		return " (numbered model, started here)"
	case s.targets.Nginx() != "":
		return " (" + line + " behind " + s.targets.Nginx() + ", started here)"
	case s.NoNginx || s.Suite.Target.Kind == suite.MutualTLS:
		return " (" + line + " started here, without nginx)"
	}
	return " (" + line + " started here, without nginx, which is not installed)"
}
