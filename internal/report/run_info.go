package report

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// notRecorded replaces missing values, because a guess would look like evidence.
const notRecorded = "not recorded"

func runInfo(v *verdict.Verdict) Section {
	r := v.RunInfo
	if r == nil {
		r = &verdict.RunInfo{}
	}
	nginx := cmp.Or(r.Nginx, notRecorded)
	if r.Nginx == "" && len(r.Command) > 0 {
		nginx = "not started by soak"
	}
	versions := []string{"soak " + cmp.Or(r.Soak, notRecorded), "k6 " + cmp.Or(K6Versions(v), r.K6, notRecorded), "Go " + cmp.Or(strings.TrimPrefix(r.Go, "go"), notRecorded)}
	if r.Backend != "" {
		versions = append(versions, "backend "+r.Backend)
	}
	versions = append(versions, "nginx "+strings.TrimPrefix(nginx, "nginx/"))
	var out facts
	out.add("command", "%s", cmp.Or(Shell(r.Command...), notRecorded))
	out.add("commit", "%s", cmp.Or(r.Commit, notRecorded))
	out.add("versions", "%s", strings.Join(versions, ", "))
	out.add("machine", "%s", computer(r.Machine))
	out.add("system", "%s", system(r.Machine))
	return out.section("ran", "Command and versions")
}

// WriteRunInfo writes the section about the run as Markdown, for a page that is not the report of a run.
func WriteRunInfo(w io.Writer, r *verdict.RunInfo) error {
	var out bytes.Buffer
	s := runInfo(&verdict.Verdict{RunInfo: r})
	markdownSection(&out, &s)
	_, err := w.Write(out.Bytes())
	return err
}

// K6Versions returns the k6 versions of the runners, each once.
func K6Versions(v *verdict.Verdict) string {
	var versions []string
	for _, r := range v.Runners {
		if r.K6Version != "" && !slices.Contains(versions, r.K6Version) {
			versions = append(versions, r.K6Version)
		}
	}
	return strings.Join(versions, ", ")
}

func computer(m resources.Machine) string {
	if m.Cores == 0 {
		return notRecorded
	}
	text := format.Count(m.Cores, "core")
	if m.CPU != "" {
		text += " (" + m.CPU + ")"
	} else {
		text += " (CPU " + notRecorded + ")"
	}
	if m.Memory > 0 {
		text += ", " + format.Bytes(m.Memory) + " of memory"
	}
	return text
}

func system(m resources.Machine) string {
	if m.Kernel == "" {
		return notRecorded
	}
	return strings.TrimPrefix(m.System+", kernel "+m.Kernel, ", ")
}

var needsNoQuotes = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Shell returns a command line for a shell. It quotes empty arguments, and arguments with special characters.
func Shell(args ...string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if !needsNoQuotes.MatchString(arg) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
