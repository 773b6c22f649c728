package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// mergeMemory is the soft memory limit of a merge. The live data of a million clients is about half of it. Without a
// limit, the garbage collector would let the heap of a larger merge grow to twice its live data.
const mergeMemory = 600 << 20

// Merge makes the verdict from the shards at a location. It first copies shards in a bucket to a folder in out. It
// writes the reports into the folder of the run, and the verdict in words to stdout. expect is the required number of
// laptops, or of runners if the run has a plan. If expect is 0, an existing verdict determines the number. Without a
// verdict, or if expect is results.ExpectAny, any number is valid.
func Merge(location, out string, expect int, stdout io.Writer, options report.TerminalOptions, systems ci.Systems) (verdict.Outcome, error) {
	return reportToCI(systems, stdout, func(reporter *ci.Reporter) (verdict.Outcome, error) {
		d, problems, err := fetchRun(location, out)
		var usage UsageError
		switch {
		case errors.As(err, &usage):
			return "", err
		case err != nil: // there is no folder to put the verdict into
			reporter.SetVerdict(&verdict.Verdict{TestID: location, Verdict: verdict.Invalid, Reasons: []string{err.Error()}}, "")
			fmt.Fprintf(stdout, "INVALID: %s: %v\n", location, err)
			return verdict.Invalid, nil
		}
		v, err := Judge(d, "", expect, problems...)
		if err != nil {
			return "", reportError(d, v, err)
		}
		WriteRunList(d, out)
		reporter.SetVerdict(v, d.Path(results.PageFile))
		return v.Verdict, report.Terminal(stdout, v, options, reportLines(d, "", v)...)
	})
}

// fetchRun returns the folder of a run. It first copies a run in a bucket to out. problems describes the files that it
// could not copy.
func fetchRun(location, out string) (d results.Dir, problems []string, err error) {
	ctx, stop := UntilSignal(context.Background())
	defer stop()
	source, err := store.Open(ctx, location)
	if err != nil {
		return "", nil, UsageError{err}
	}
	defer source.Close()
	if folder, ok := source.(store.Folder); ok {
		return results.Dir(folder), nil, nil
	}
	ctx, cancel := context.WithTimeout(withProgress(ctx), fetchTimeout)
	defer cancel()
	reportedAt := time.Now()
	return results.Fetch(ctx, source, out, func(done, total int) {
		if time.Since(reportedAt) > 2*time.Second {
			reportedAt = time.Now()
			fmt.Fprintf(os.Stderr, "fetched %d of %d files\n", done, total)
		}
	})
}

// Judge makes the verdict of a run from its files, and every report. baseline is a run of the same plan to compare
// with; "" selects the last such run next to d that passed without a regression. expect is as in Merge. problems make
// the verdict invalid. If a report cannot be written, Judge returns the verdict and an error. Judge limits the memory
// of this process to mergeMemory.
func Judge(d, baseline results.Dir, expect int, problems ...string) (*verdict.Verdict, error) {
	debug.SetMemoryLimit(mergeMemory)
	v, m, err := d.JudgeExpecting(expect, problems...)
	if err != nil {
		return nil, err
	}
	return v, d.Report(v, m, baseline)
}

func reportError(d results.Dir, v *verdict.Verdict, err error) error {
	if v == nil {
		return err
	}
	return fmt.Errorf("the verdict is %s, but not all of its reports were written: %w; fix the cause, and run `soak report %s`", v.Verdict, err, d.Relative())
}

// WriteRunList writes the page of all runs and returns its path. For a run that is not in out, WriteRunList replaces
// only an existing page in the folder above the run. It returns "" if it writes no page. An error becomes a warning,
// because the verdict exists.
func WriteRunList(d results.Dir, out string) (page string) {
	folder := filepath.Dir(resolveLink(string(d)))
	if (out == "" || resolveLink(out) != folder) && !results.HasHistory(folder) {
		return ""
	}
	if err := results.WriteHistory(folder); err != nil {
		printMessage(fmt.Sprintf("warning: the list of all runs was not updated: %v", err))
		return ""
	}
	return filepath.Join(folder, results.HistoryFile)
}

// resolveLink returns the absolute path, with links such as results/latest resolved if they exist.
func resolveLink(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return path
}

// reportLines returns the paths of the reports, and the next step that the verdict suggests. history is the page of all
// runs; "": none.
func reportLines(d results.Dir, history string, v *verdict.Verdict) []string {
	lines := []string{"report  " + results.Dir(d.Path(results.PageFile)).Relative()}
	if history != "" {
		lines = append(lines, "runs    "+results.Dir(history).Relative())
	}
	if step := v.NextStep(); step != "" {
		lines = append(lines, step)
	}
	return lines
}

func (s *session) conclude() (verdict.Outcome, error) {
	v, err := Judge(s.dir, "", 0)
	if err != nil {
		return "", reportError(s.dir, v, err)
	}
	history := WriteRunList(s.dir, s.Out)
	s.ci.SetVerdict(v, s.dir.Path(results.PageFile))
	fmt.Fprintln(s.Stdout)
	return v.Verdict, report.Terminal(s.Stdout, v, s.Terminal, reportLines(s.dir, history, v)...)
}
