// Package ci reports a verdict to a CI system. GitHub Actions receives annotations, a summary and outputs of the step.
// Other systems receive a file in JUnit's format. The package does not change the verdict or the exit code.
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

// Systems selects the CI systems that receive the verdict. The zero value selects none.
type Systems struct {
	GitHub bool
	JUnit  string // path of the file in JUnit's format; "" if none is written
}

// Any reports whether a CI system receives the verdict.
func (s Systems) Any() bool { return s != Systems{} }

// Check returns an error if the folder of the JUnit file is missing. It also returns an error if the path names
// anything but a new file, an empty file or a readable file in JUnit's format.
func (s Systems) Check() error {
	if s.JUnit == "" {
		return nil
	}
	folder := filepath.Dir(s.JUnit)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("--junit must be a file in an existing folder, got %q; create %s", s.JUnit, folder)
	}
	if info, err := os.Stat(s.JUnit); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--junit must be a regular file, got %q", s.JUnit)
	}
	if !isReplaceable(s.JUnit) {
		return fmt.Errorf("--junit must be a new file or a readable file in JUnit's format, got %q; remove it or name another file", s.JUnit)
	}
	return nil
}

// isReplaceable reports whether a file does not exist, is empty or has JUnit's format. Other files must remain, because
// a soak.yaml that the user did not write may name any file.
func isReplaceable(path string) bool {
	file, err := safefile.Open(path, safefile.Table)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, 1024))
	return err == nil && (len(head) == 0 || bytes.Contains(head, []byte("<testsuite")))
}

// A Reporter reports one verdict, or the error of a run without a verdict.
type Reporter struct {
	systems Systems
	out     io.Writer // standard output, in which GitHub's runner finds workflow commands
	token   string    // ends the part of the output in which GitHub's runner executes no commands
	verdict *verdict.Verdict
	report  string // path of the report
}

// Begin returns a Reporter. The caller must call Begin before it writes any other output. With Systems.GitHub, GitHub's
// runner executes no commands in the output of soak from Begin to End, because the output contains text from services.
func Begin(systems Systems, out io.Writer) *Reporter {
	r := &Reporter{systems: systems, out: out, token: rand.Text()}
	if systems.GitHub {
		fmt.Fprintf(out, "::stop-commands::%s\n", r.token)
	}
	return r
}

// SetVerdict sets the verdict to report, and the path of the report. On a nil Reporter it does nothing.
func (r *Reporter) SetVerdict(v *verdict.Verdict, report string) {
	if r != nil {
		r.verdict, r.report = v, report
	}
}

// End reports the verdict, or err if there is no verdict. It returns the error to print: err or, for GitHub, err as one
// line without workflow commands. It calls warn if it cannot write a file for a CI system.
func (r *Reporter) End(err error, warn func(string)) error {
	v := r.verdict
	if v == nil {
		v = &verdict.Verdict{Verdict: verdict.Invalid, Reasons: []string{"there is no verdict"}}
		if err != nil {
			v.Reasons = []string{err.Error()}
		}
	}
	check := func(writeErr error) {
		if writeErr != nil {
			warn("cannot complete the report to CI: " + escapeCommands(writeErr.Error()) + "; the exit code is not affected")
		}
	}
	if r.systems.JUnit != "" {
		check(safefile.Write(r.systems.JUnit, func(w io.Writer) error { return junit(format.NewEscaper(w), v) }))
	}
	if !r.systems.GitHub {
		return err
	}
	text := noVerdict(v)
	if len(v.Checks) > 0 {
		text = summary(v)
	}
	check(appendTo("GITHUB_STEP_SUMMARY", text))
	if os.Getenv("GITHUB_OUTPUT") != "" { // GitHub sets it within a step
		check(appendTo("GITHUB_OUTPUT", outputs(v, r.report)))
	}
	fmt.Fprintf(r.out, "::%s::\n", r.token)
	for _, a := range annotations(v) {
		fmt.Fprintln(r.out, a)
	}
	if err != nil {
		return escapedError{err}
	}
	return nil
}

// An escapedError is an error whose text contains no workflow command.
type escapedError struct{ error }

func (e escapedError) Error() string { return escapeCommands(e.error.Error()) }
func (e escapedError) Unwrap() error { return e.error }

// escapeCommands returns text as one line without "##[", which GitHub's runner executes anywhere in a line. The
// runner executes "::" only at the start of a line, so the caller must print other text before the result.
func escapeCommands(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.ReplaceAll(text, "##[", "# #[")
}

// title returns the name under which CI systems list the checks: the kind of run.
func title(v *verdict.Verdict) string { return cmp.Or(v.Layout.Title, "Soak") }

// unmetChecks returns the checks that are not met, without warnings. If the verdict is not pass and there are none, it
// returns a substitute check with the reasons of the verdict.
func unmetChecks(v *verdict.Verdict) (out []verdict.Check) {
	for _, c := range v.Checks {
		if s := c.State(); s == verdict.Broken || s == verdict.Undecided {
			out = append(out, c)
		}
	}
	if len(out) == 0 && v.Verdict != verdict.Pass {
		out = append(out, verdict.Check{
			ID: verdict.CheckVerdict, Name: "verdict", Limit: string(verdict.Pass), Actual: string(v.Verdict),
			Severity: verdict.InconclusiveIf(v.Verdict == verdict.Invalid), Reasons: v.Reasons,
		})
	}
	return out
}

// appendTo adds text, with escaped control characters, to the file that GitHub names in an environment variable.
func appendTo(variable, text string) error {
	path := os.Getenv(variable)
	if path == "" {
		return fmt.Errorf("%s is not set; remove --github outside of GitHub Actions", variable)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // #nosec G304 G703 -- a file that GitHub names
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	_, err = io.WriteString(f, format.Escape(text))
	return errors.Join(err, f.Close())
}
