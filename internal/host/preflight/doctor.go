package preflight

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// A State is the effect of a finding on a run.
type State string

// The values of State.
const (
	OK      State = "ok"
	Absent  State = "absent"  // an unknown value, or a program that a run does not need and that is missing or fails
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

// Inspect returns the findings of all checks of this machine for a plan. programs has the programs of this repository.
func Inspect(ctx context.Context, p plan.Plan, s Services, programs []Program) []Finding {
	out := limits(p, Read(), s)
	out = append(out, clock())
	for _, program := range append(programs, optionalPrograms...) {
		out = append(out, program.check(ctx))
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
		{"memory", fmt.Sprintf("%s available; the run may use %s", format.Bytes(m.Available), format.Bytes(Memory(p, s))), Machine{Available: m.Available}},
	} {
		f := Finding{Group: "limits", Name: limit.name, State: OK, Result: limit.value}
		isUnknown := limit.machine == (Machine{})
		limit.machine.Cores = m.Cores
		errs, warnings := Check(p, limit.machine, s)
		switch {
		case isUnknown:
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

// A Program is an executable that soak starts, or that the user may need.
type Program struct {
	Name        string
	Names       []string               // names of the executable that are tried before Name
	Find        func() (string, error) // replaces the search on the PATH
	Version     []string               // arguments with which the program prints its version, or connects to its service
	Consequence string                 // effect on the user if the program is missing or fails
	Needed      bool                   // the planned run needs the program
	Remedy      string                 // how to install the program
	Start       string                 // remedy if the program fails; "": Remedy
}

// optionalPrograms lists the third-party programs. A run can start without them.
var optionalPrograms = []Program{
	{Name: "nginx", Find: func() (string, error) { return process.Find("nginx") }, Version: []string{"-v"}, Consequence: "local runs have no proxy in front of the backend", Remedy: "apt-get install nginx-light"},
	{Name: "docker", Version: []string{"info", "--format", "Docker {{.ServerVersion}}, Compose and images of the stack"}, Consequence: "no `make up`, no images", Remedy: "https://docs.docker.com/engine/install/", Start: "systemctl start docker, and join the group docker"},
	{Name: "prometheus", Version: []string{"--version"}, Consequence: "`soak open` cannot show Prometheus data", Remedy: "apt-get install prometheus"},
	{Name: "kubectl", Version: []string{"version", "--request-timeout=3s"}, Consequence: "no shell on Kubernetes; `--on k8s` needs a cluster, not kubectl", Remedy: "https://kubernetes.io/docs/tasks/tools/", Start: "kubectl config use-context NAME, for a cluster that responds"},
	{Name: "terraform", Version: []string{"version"}, Consequence: "no machines on AWS (`make aws-up`)", Remedy: "https://developer.hashicorp.com/terraform/install"},
	{Name: "aws", Version: []string{"--version"}, Consequence: "no machines on AWS", Remedy: "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"},
	{Name: "session-manager-plugin", Version: []string{"--version"}, Consequence: "no tunnel to machines on AWS", Remedy: "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"},
	{Name: "browser", Names: []string{"chromium", "chromium-browser", "google-chrome", "firefox"}, Version: []string{"--version"}, Consequence: "reports cannot be opened on this machine", Remedy: "apt-get install chromium"},
}

const versionTimeout = 5 * time.Second

func (p Program) check(ctx context.Context) Finding {
	f := Finding{Group: "programs", Name: p.Name, State: OK, Remedy: p.Remedy}
	path, err := p.path()
	if err != nil {
		f.State, f.Result = p.stateIfMissing(), "not found: "+p.Consequence
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, p.Version...) // #nosec G204 -- a fixed list of programs
	cmd.WaitDelay = time.Second                         // a child process may keep the output open
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		reason := cmp.Or(lastLine(&stderr), err.Error())
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			reason = "still running after " + versionTimeout.String()
		}
		f.State, f.Result = p.stateIfMissing(), fmt.Sprintf("%s failed (%s): %s", path, reason, p.Consequence)
		f.Remedy = cmp.Or(p.Start, p.Remedy)
		return f
	}
	f.Result, f.Remedy = cmp.Or(firstLine(&stdout), firstLine(&stderr), path), ""
	return f
}

func (p Program) stateIfMissing() State {
	if p.Needed {
		return Broken
	}
	return Absent
}

func (p Program) path() (path string, err error) {
	if p.Find != nil {
		return p.Find()
	}
	for _, name := range append(p.Names, p.Name) {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", err
}

func firstLine(out *bytes.Buffer) string {
	line, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	return strings.TrimSpace(line)
}

func lastLine(out *bytes.Buffer) string {
	text := strings.TrimSpace(out.String())
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
