// Package doctor looks at this machine as a run would, without one: its limits, its clock, and the programs that a run, a test
// or the cloud needs. Whatever is not in order has the command that mends it.
package doctor

import (
	"context"
	"fmt"
	"strconv"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/preflight"
)

// A State is what one finding means for a run.
type State string

// The states.
const (
	OK      State = "ok"
	Absent  State = "absent"  // nothing that a run needs: the finding says what is not to be had without it
	Warning State = "warning" // a run begins, and may be disturbed
	Broken  State = "broken"  // a run does not begin, or breaks midway
)

// A Finding is what was found of one thing.
type Finding struct {
	About string `json:"about"`          // limits, clock or programs
	Name  string `json:"name"`           // such as "open files"
	State State  `json:"state"`          //
	Found string `json:"found"`          // one sentence, or a value
	Mend  string `json:"mend,omitempty"` // what to do, mostly a command
}

// Look finds all of it, for a run of that plan and those services.
func Look(ctx context.Context, p plan.Plan, s preflight.Services, own []Program) []Finding {
	out := limits(p, preflight.Look(), s)
	out = append(out, clock())
	for _, program := range append(own, others...) {
		out = append(out, program.look(ctx))
	}
	return out
}

// Fit says that a run can begin.
func Fit(findings []Finding) bool {
	for _, f := range findings {
		if f.State == Broken {
			return false
		}
	}
	return true
}

// limits are those that preflight checks, each by itself: a limit that is not known is not checked.
func limits(p plan.Plan, m preflight.Machine, s preflight.Services) []Finding {
	var out []Finding
	for _, limit := range []struct {
		name, value string
		only        preflight.Machine
	}{
		{"open files", strconv.FormatUint(m.Files, 10) + " per process", preflight.Machine{Files: m.Files}},
		{"ephemeral ports", strconv.Itoa(m.Ports), preflight.Machine{Ports: m.Ports}},
		{"accept queue", strconv.Itoa(m.Backlog), preflight.Machine{Backlog: m.Backlog}},
		{"memory", fmt.Sprintf("%s available, the run may take %s", format.Bytes(m.Available), format.Bytes(preflight.Memory(p, s))), preflight.Machine{Available: m.Available}},
	} {
		f := Finding{About: "limits", Name: limit.name, State: OK, Found: limit.value}
		errs, warnings := preflight.Check(p, limit.only, s)
		switch {
		case limit.only == (preflight.Machine{}):
			f.State, f.Found = Absent, "not known on this system, so not checked"
		case len(errs) > 0:
			f.State, f.Found = Broken, errs[0]
		case len(warnings) > 0:
			f.State, f.Found = Warning, warnings[0]
		}
		out = append(out, f)
	}
	return out
}
