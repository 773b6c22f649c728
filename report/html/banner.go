package html

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/verdict"
)

func tone(v verdict.Outcome) Tone {
	switch v {
	case verdict.Pass:
		return Good
	case verdict.Fail:
		return Bad
	case verdict.Invalid:
	}
	return Doubt
}

// zero is the tone of a count that should be 0.
func zero(n uint64) Tone {
	if n == 0 {
		return ""
	}
	return Bad
}

func (s *soak) banner() Banner {
	v, c, n := s.v, s.v.Connections, s.v.Noops
	b := Banner{Word: strings.ToUpper(string(v.Verdict)), Tone: tone(v.Verdict), Name: v.TestID, Reasons: v.Reasons}
	whole := func(part, all uint64) Tone {
		if part == all {
			return Good
		}
		return Bad
	}
	b.Tiles = []Tile{
		{Name: "connections held", Value: integer(c.Completed), Note: "of " + integer(c.Planned) + " planned", Tone: whole(uint64(c.Completed), uint64(c.Planned))},
		{Name: "noops received", Value: count(n.Received), Note: "of " + count(n.Expected) + " expected", Tone: whole(n.Received, n.Expected)},
		{Name: "noops missed", Value: count(n.Missed), Note: share(float64(n.Missed), float64(n.Expected)) + " of the expected", Tone: whole(n.Missed, 0)},
		{Name: "lateness p99", Value: duration(v.LatenessMS.P99), Note: "at most " + duration(v.LatenessMS.Max)},
	}
	server := Tile{Name: "the server's count", Value: "unknown", Note: "it shows no ledger"}
	if v.Server.Known {
		server = Tile{Name: "the server's count", Value: "agrees", Note: "it sent " + count(v.Server.Sent), Tone: Good}
		if !v.Server.Agrees {
			server.Value, server.Tone = "differs", Bad
		}
	}
	b.Tiles = append(b.Tiles, server)
	return b
}

func (s *soak) criteria() Section {
	t := Table{Columns: columns("criterion", "limit", "actual", "what it means")}
	for _, c := range s.v.Criteria {
		name := Cell{Text: c.Name, Tone: Good, Mark: "✓"}
		switch {
		case c.Pass:
		case c.Advisory:
			name.Tone, name.Mark = Doubt, "!"
		case c.Invalid:
			name.Tone, name.Mark = Doubt, "?"
		default:
			name.Tone, name.Mark = Bad, "✗"
		}
		t.Rows = append(t.Rows, Row{name, {Text: c.Limit}, {Text: c.Actual, Tone: actualTone(c)}, {Text: c.Why}})
	}
	out := Section{ID: "criteria", Title: "Criteria", Tables: []Table{t}}
	if len(s.v.Checks) > 0 {
		checks := Table{Caption: "Checks of the script", Columns: columns("check", "#passes", "#fails")}
		for _, c := range s.v.Checks {
			checks.Rows = append(checks.Rows, Row{{Text: c.Name}, {Text: count(uint64(c.Passes))}, {Text: count(uint64(c.Fails)), Tone: zero(uint64(c.Fails))}}) //nolint:gosec // counts
		}
		out.Tables = append(out.Tables, checks)
	}
	for _, w := range s.v.Warnings {
		out.Notes = append(out.Notes, "Warning: "+w)
	}
	return out
}

func actualTone(c verdict.Criterion) Tone {
	switch {
	case c.Pass:
		return ""
	case c.Advisory || c.Invalid:
		return Doubt
	}
	return Bad
}

// card says what was run, on what, and when.
func (s *soak) card() Section {
	p, m := s.v.Plan, s.Machine
	target := p.BackendURL
	if s.OneClock {
		target += " (started by soak on this machine)"
	}
	reconnect := "no: a lost stream stays lost"
	if p.Reconnect {
		reconnect = "yes, by Last-Event-ID"
	}
	plan := facts(
		"plan", fmt.Sprintf("%s connections for %s, a noop every %v s", integer(p.Connections), hms(float64(p.Seconds)), p.NoopInterval),
		"runners", fmt.Sprintf("%s, up to %s per virtual user", plural(p.Runners, "k6 process", "k6 processes"), plural(p.ConnectionsPerVU, "stream", "streams")),
		"target", target,
		"device ids", fmt.Sprintf("%s … %s", p.DeviceID(0), p.DeviceID(p.Connections-1)),
		"clients reconnect", reconnect,
		"late means", fmt.Sprintf("over %d ms", p.LateMS),
		"started", date(s.v.StartedUnix),
		"ended", date(s.v.EndedUnix),
		"command", strings.Join(s.Command, " "),
	)
	plan.Caption = "The run"
	machine := facts(
		"script", s.script(),
		"soak", s.Version, "k6", s.k6(), "backend", s.Backend, "nginx", s.Nginx,
		"machine", m.Name, "system", m.System, "kernel", m.Kernel,
		"CPU", coresOf(m.Cores, m.CPU), "memory", memoryOf(m.Memory),
		"open files", limitOf(s.Limits.Files, "per process"),
		"ephemeral ports", limitOf(uint64(max(s.Limits.Ports, 0)), "per target address"),
		"accept queue", limitOf(uint64(max(s.Limits.Backlog, 0)), "net.core.somaxconn"),
		"resources from", s.source(),
	)
	machine.Caption = "Versions, host and limits"
	return Section{ID: "card", Title: "The run", Tables: []Table{plan, machine}}
}

func coresOf(n int, model string) string {
	if n == 0 {
		return ""
	}
	return strings.TrimSpace(plural(n, "core", "cores") + " " + model)
}

func memoryOf(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	return memory(mib(bytes))
}

func limitOf(n uint64, of string) string {
	if n == 0 {
		return ""
	}
	return count(n) + " " + of
}

func (s *soak) script() string {
	if len(s.Merged.Runners) == 0 {
		return ""
	}
	r := s.Merged.Runners[0]
	return strings.TrimSpace(fmt.Sprintf("%s (sha256 %.12s)", r.Script, r.ScriptHash))
}

func (s *soak) k6() string {
	var all []string
	for _, r := range s.v.Runners {
		if !strings.Contains(strings.Join(all, ", "), r.K6Version) {
			all = append(all, r.K6Version)
		}
	}
	return strings.Join(all, ", ")
}

// source says where the figures of target and host come from.
func (s *soak) source() string {
	switch {
	case s.ResourcesFrom != "":
		return "Prometheus at " + s.ResourcesFrom
	case len(s.Samples) == 0:
		return "nothing: neither soak nor a Prometheus watched the target"
	case s.series.backendRSS == nil:
		return "soak itself, every 5 s, of this machine; the target shows no metrics"
	}
	return "soak itself, every 5 s: the backend's /metrics, nginx's processes, this machine's /proc"
}
