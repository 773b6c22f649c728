package preflight

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// A State is the effect of a finding on a run.
type State string

// The values of State.
const (
	OK      State = "ok"
	Absent  State = "absent"  // not needed for a run; the finding names the unavailable feature
	Warning State = "warning" // a run can start, but the machine may affect its results
	Broken  State = "broken"  // a run cannot start
)

// A Finding is the result of one check.
type Finding struct {
	Group  string `json:"about"` // limits, clock, programs or service
	Name   string `json:"name"`  // such as "open files"
	State  State  `json:"state"`
	Result string `json:"found"`            // one sentence, or a value
	Remedy string `json:"remedy,omitempty"` // an instruction, often a command
}

// Inspect returns the findings of all checks of this machine for a run of a plan. programs are the programs of this repository.
func Inspect(ctx context.Context, p plan.Plan, s Services, programs []Program) []Finding {
	out := limits(p, Read(), s)
	out = append(out, clock())
	for _, program := range append(programs, optionalPrograms...) {
		out = append(out, program.find(ctx))
	}
	return out
}

// CanStart reports whether a run can start.
func CanStart(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.State == Broken })
}

// limits returns a finding for each limit of the machine. An unknown limit is not checked.
func limits(p plan.Plan, m Machine, s Services) []Finding {
	var out []Finding
	for _, limit := range []struct {
		name, value string
		machine     Machine
	}{
		{"open files", strconv.FormatUint(m.Files, 10) + " per process", Machine{Files: m.Files}},
		{"ephemeral ports", strconv.Itoa(m.Ports), Machine{Ports: m.Ports}},
		{"accept queue", strconv.Itoa(m.Backlog), Machine{Backlog: m.Backlog}},
		{"memory", fmt.Sprintf("%s available, the run may use %s", format.Bytes(m.Available), format.Bytes(Memory(p, s))), Machine{Available: m.Available}},
	} {
		f := Finding{Group: "limits", Name: limit.name, State: OK, Result: limit.value}
		errs, warnings := Check(p, limit.machine, s)
		switch {
		case limit.machine == (Machine{}):
			f.State, f.Result = Absent, "unknown on this system, so not checked"
		case len(errs) > 0:
			f.State, f.Result = Broken, errs[0]
		case len(warnings) > 0:
			f.State, f.Result = Warning, warnings[0]
		}
		out = append(out, f)
	}
	return out
}
