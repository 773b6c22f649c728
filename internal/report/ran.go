package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// notRecorded stands for what nobody wrote down: a guess would pass for evidence.
const notRecorded = "not recorded"

// Ran says what a run was made with, one thing per line; docs/results keeps runs by it.
func Ran(v *verdict.Verdict) []verdict.Fact {
	ran := v.Ran
	if ran == nil {
		ran = &verdict.Ran{}
	}
	nginx := cmp.Or(ran.Nginx, notRecorded)
	if ran.Nginx == "" && len(ran.Command) > 0 {
		nginx = "none that soak started"
	}
	versions := []string{"soak " + cmp.Or(ran.Soak, notRecorded), "k6 " + cmp.Or(K6(v), ran.K6, notRecorded), "Go " + cmp.Or(strings.TrimPrefix(ran.Go, "go"), notRecorded)}
	if ran.Backend != "" {
		versions = append(versions, "backend "+ran.Backend)
	}
	versions = append(versions, "nginx "+strings.TrimPrefix(nginx, "nginx/"))
	var out list
	out.add("command", "%s", cmp.Or(Shell(ran.Command...), notRecorded))
	out.add("commit", "%s", cmp.Or(ran.Commit, notRecorded))
	out.add("versions", "%s", strings.Join(versions, ", "))
	out.add("machine", "%s", computer(ran.Machine))
	out.add("system", "%s", system(ran.Machine))
	return out
}

// WriteRan writes that section for a page that is no report of a run.
func WriteRan(w io.Writer, ran *verdict.Ran) error {
	text := "\n## What ran\n\n| | |\n|---|---|\n"
	for _, f := range Ran(&verdict.Verdict{Ran: ran}) {
		text += fmt.Sprintf("| **%s** | %s |\n", f.Name, escaper.Replace(f.Value))
	}
	_, err := io.WriteString(w, text)
	return err
}

// K6 are the versions of the runners.
func K6(v *verdict.Verdict) string {
	var all []string
	for _, r := range v.Runners {
		if r.K6Version != "" && !slices.Contains(all, r.K6Version) {
			all = append(all, r.K6Version)
		}
	}
	return strings.Join(all, ", ")
}

// computer is what a machine has. Its name tells strangers nothing.
func computer(m resources.Machine) string {
	if m.Cores == 0 {
		return notRecorded
	}
	text := format.Count(m.Cores, "core") + " of " + cmp.Or(m.CPU, "a CPU "+notRecorded)
	if m.Memory > 0 {
		text += fmt.Sprintf(", %s of memory", format.Bytes(m.Memory))
	}
	return text
}

func system(m resources.Machine) string {
	if m.Kernel == "" {
		return notRecorded
	}
	return strings.TrimPrefix(m.System+", kernel "+m.Kernel, ", ")
}
