// Package ci reports a verdict to a CI system: to GitHub Actions by annotations, a summary and outputs of the step, to others by
// a file in JUnit's format. It changes no verdict and no exit code.
package ci

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Targets lists the CI systems that get the result. The zero value has none.
type Targets struct {
	GitHub bool
	JUnit  string // path of a file; "": none
}

// Any reports whether a CI system gets the result.
func (t Targets) Any() bool { return t != Targets{} }

// Check returns an error if the file cannot be written.
func (t Targets) Check() error {
	if t.JUnit == "" {
		return nil
	}
	folder := filepath.Dir(t.JUnit)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("--junit must be a file in an existing folder, got %q; create %s", t.JUnit, folder)
	}
	if info, err := os.Stat(t.JUnit); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--junit must be a file, got %q", t.JUnit)
	}
	if !isReplaceable(t.JUnit) {
		return fmt.Errorf("--junit must not name an existing file of another format, got %q; remove it or name another file", t.JUnit)
	}
	return nil
}

// isReplaceable reports whether a file does not exist, is empty or has JUnit's format. soak.yaml of the working
// directory may name any file.
func isReplaceable(path string) bool {
	file, err := safefile.Open(path, safefile.Table)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, 1024))
	return err == nil && (len(head) == 0 || bytes.Contains(head, []byte("<testsuite")))
}

// A Reporter reports one verdict, or the error in its place.
type Reporter struct {
	targets Targets
	out     io.Writer // standard output, where GitHub's runner reads commands
	token   string    // ends the section of output without commands
	verdict *verdict.Verdict
	report  string
}

// Begin must be called before any other output. From then until End, GitHub's runner executes no commands in the
// output of soak, which contains texts of services.
func Begin(targets Targets, out io.Writer) *Reporter {
	r := &Reporter{targets: targets, out: out, token: rand.Text()}
	if targets.GitHub {
		fmt.Fprintf(out, "::stop-commands::%s\n", r.token)
	}
	return r
}

// SetVerdict sets the verdict to report, and the path of the report. A nil Reporter does nothing.
func (r *Reporter) SetVerdict(v *verdict.Verdict, report string) {
	if r != nil {
		r.verdict, r.report = v, report
	}
}

// End reports the verdict, or the error in its place, and returns the error to print after it: the same in one line,
// which GitHub's runner reads as text. warn is called if a report cannot be written.
func (r *Reporter) End(err error, warn func(string)) error {
	v := r.verdict
	if v == nil {
		v = &verdict.Verdict{Verdict: verdict.Invalid, Reasons: []string{"there is no verdict"}}
		if err != nil {
			v.Reasons = []string{err.Error()}
		}
	}
	if r.targets.JUnit != "" {
		writeErr := safefile.Write(r.targets.JUnit, func(w io.Writer) error { return junit(format.NewEscaper(w), v) })
		r.warn(writeErr, warn)
	}
	if !r.targets.GitHub {
		return err
	}
	text := noVerdict(v)
	if len(v.Checks) > 0 { // else nothing was judged
		text = summary(v)
	}
	r.warn(appendTo("GITHUB_STEP_SUMMARY", text), warn)
	if os.Getenv("GITHUB_OUTPUT") != "" { // only within a step
		r.warn(appendTo("GITHUB_OUTPUT", outputs(v, r.report)), warn)
	}
	fmt.Fprintf(r.out, "::%s::\n", r.token)
	for _, a := range annotations(v) {
		fmt.Fprintln(r.out, a)
	}
	if err != nil {
		return reportedError{err}
	}
	return nil
}

func (r *Reporter) warn(err error, warn func(string)) {
	if err != nil {
		warn("the verdict is valid, but reporting it to CI failed in part: " + escapeCommands(err.Error()))
	}
}

// A reportedError was already reported to GitHub.
type reportedError struct{ error }

func (e reportedError) Error() string { return escapeCommands(e.error.Error()) }
func (e reportedError) Unwrap() error { return e.error }

// escapeCommands returns a text as one line that GitHub's runner does not execute as a workflow command.
func escapeCommands(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.ReplaceAll(text, "##[", "# #[")
}

// name returns the name under which CI systems list the checks: the kind of run.
func name(v *verdict.Verdict) string { return cmp.Or(v.Layout.Title, "Soak") }

// decidingChecks returns the checks that decided a verdict other than pass. If there is none, one check has all
// reasons.
func decidingChecks(v *verdict.Verdict) (out []verdict.Check) {
	for _, c := range v.Checks {
		if s := c.State(); s == verdict.Broken || s == verdict.Undecided {
			out = append(out, c)
		}
	}
	if len(out) == 0 && v.Verdict != verdict.Pass { // nothing was judged
		out = append(out, verdict.Check{ID: verdict.CheckVerdict, Name: "a verdict", Limit: string(verdict.Pass), Actual: string(v.Verdict), Severity: verdict.InconclusiveIf(v.Verdict == verdict.Invalid), Reasons: v.Reasons})
	}
	return out
}

// appendTo adds text to the file that GitHub names in a variable; without the variable it does nothing.
func appendTo(variable, text string) error {
	path := os.Getenv(variable)
	if path == "" {
		return fmt.Errorf("%s is not set, as it is on GitHub Actions", variable)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // #nosec G304 G703 -- a file that GitHub names
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	_, err = io.WriteString(f, format.Escape(text))
	return errors.Join(err, f.Close())
}
