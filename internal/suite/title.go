package suite

import (
	"cmp"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Title says in a line what was planned.
func Title(v *verdict.Verdict) string {
	p := v.Plan
	name := cmp.Or(p.Suite, soak.Name)
	if p.Service != "" {
		name += " of " + p.ServiceName()
	}
	var parts []string
	if v.Suite != nil {
		parts = append(parts, "profile "+v.Suite.Profile)
	}
	if p.Connections > 0 {
		parts = append(parts, format.Count(p.Connections, "connection"))
	}
	if p.Seconds > 0 {
		parts = append(parts, format.Duration(time.Duration(p.Seconds)*time.Second))
	}
	if p.NoopInterval > 0 || v.Service.Name != "" {
		parts = append(parts, verdict.Rhythm(&p, &v.Service))
	}
	return name + ": " + strings.Join(append(parts, format.Count(p.Runners, "runner")), ", ")
}
