package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/suite"
)

// announce prints what is about to run.
func (s *session) announce() {
	p, load := s.Plan, format.Count(s.needs.VUs, "virtual user")
	if s.needs.Connections > 0 {
		load = format.Count(s.needs.Connections, "connection") + " at a time"
	}
	what := fmt.Sprintf("%s %s: %s by %s, up to %s, at most %s", p.Suite, p.TestID, s.Suite.Script[len(s.Suite.Script)-1],
		format.Count(p.Runners, "runner"), load, format.Duration(s.needs.Duration.Round(time.Second)))
	if s.Suite.Plan.Known {
		what = fmt.Sprintf("%s %s: %s for %s, %s, %s", s.Suite.Name, p.TestID,
			format.Count(p.Connections, "connection"), format.Duration(time.Duration(p.Seconds)*time.Second), s.rhythm(), format.Count(p.Runners, "runner"))
	}
	if s.part > 0 {
		what += fmt.Sprintf(", here only number %d", s.part)
	}
	fmt.Fprintln(s.Stdout, what)
	s.printWarnings()
}

// announceTarget prints the address of the target, and the actions.
func (s *session) announceTarget() {
	p := s.Plan
	where := p.BackendURL + s.through()
	if len(s.seen.Proxies) > 0 {
		where += " through the proxy " + strings.Join(s.seen.Proxies, ", ")
	}
	if s.seen.Cores != "" {
		where += "; " + s.seen.Cores
	}
	if p.Service != "" {
		where = p.ServiceName() + " at " + where
	}
	if s.cluster != nil {
		where += " and a cluster at " + s.ClusterURL
	}
	fmt.Fprintf(s.Stdout, "target %s\n", where)
	for _, a := range s.actions {
		fmt.Fprintf(s.Stdout, "at %s  %s: %s\n", format.Duration(a.At), a.Name, s.shownAction(a).Command)
	}
}

// through names the parts of the target that were started here.
func (s *session) through() string {
	if !s.targets.Local() {
		return ""
	}
	what := "backend"
	if n := len(s.targets); n > 1 {
		what = fmt.Sprintf("%d backends", n)
	}
	switch {
	case s.Suite.Target.Kind == suite.Model:
		return " (numbered model, started here)"
	case s.targets.Nginx() != "":
		return " (" + what + " behind " + s.targets.Nginx() + ", started here)"
	case s.NoNginx || s.Suite.Target.Kind == suite.MutualTLS:
		return " (" + what + " started here, without nginx)"
	}
	return " (" + what + " started here; nginx is not installed, so without it)"
}
