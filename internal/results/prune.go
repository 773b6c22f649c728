package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Decision states whether pruning removes a run, and why.
type Decision struct {
	Name   string
	Remove bool
	Reason string
}

// removedPrefix is the prefix of a folder that is being removed. A partly removed folder is not listed as a run.
const removedPrefix = ".removed-"

// Prune decides which runs to remove. It keeps the given number of newest runs, baselines of other runs, and the run to
// which `latest` links. It also keeps runs that failed, invalid runs with faults, and runs whose verdict is missing,
// damaged or unknown.
func (h *History) Prune(keep int) ([]Decision, error) {
	baselines, err := h.baselines()
	if err != nil {
		return nil, err
	}
	latest, _ := os.Readlink(filepath.Join(h.Folder, "latest"))
	decisions := make([]Decision, len(h.Runs))
	for i, r := range h.Runs {
		d := Decision{Name: r.Name}
		switch {
		case i < keep:
			d.Reason = newest(keep)
		case r.State == Unfinished:
			d.Reason = "it has no verdict, and may be running"
		case r.State == Damaged:
			d.Reason = "its verdict cannot be read, so it may have failed"
		case r.Verdict.Verdict == verdict.Fail:
			d.Reason = "it failed"
		case r.Verdict.Verdict != verdict.Pass && r.Verdict.Verdict != verdict.Invalid:
			d.Reason = fmt.Sprintf("its verdict, %q, is unknown, so it may have failed", r.Verdict.Verdict)
		case r.Verdict.Verdict == verdict.Invalid && len(r.Verdict.Findings)+len(r.faults()) > 0:
			d.Reason = "it is invalid, but found faults"
		case baselines[r.Name] != "":
			d.Reason = "it is the baseline of " + baselines[r.Name]
		case filepath.Base(latest) == r.Name:
			d.Reason = "latest links to it"
		default:
			d.Remove, d.Reason = true, fmt.Sprintf("%s, and not %s", r.outcome(), newest(keep))
		}
		decisions[i] = d
	}
	return decisions, nil
}

func newest(keep int) string {
	if keep == 1 {
		return "the newest run"
	}
	return fmt.Sprintf("one of the %s newest runs", format.Thousands(keep))
}

// baselines returns the named baselines (`soak report --baseline`), each with a run that is compared with it.
func (h *History) baselines() (map[string]string, error) {
	out := map[string]string{}
	for _, r := range h.Runs {
		name, err := Dir(r.Dir).Baseline()
		if err != nil {
			return nil, fmt.Errorf("nothing is removed, because the baseline of %s cannot be read: %w", r.Name, err)
		}
		out[name] = r.Name
	}
	return out, nil
}

// Remove removes the runs that the decisions remove, and folders that an interrupted removal left. If a run cannot be
// removed, Remove changes its decision.
func (h *History) Remove(decisions []Decision) error {
	errs := []error{h.clear()}
	for i, d := range decisions {
		if !d.Remove {
			continue
		}
		if err := os.Rename(filepath.Join(h.Folder, d.Name), filepath.Join(h.Folder, removedPrefix+d.Name)); err != nil {
			decisions[i] = Decision{Name: d.Name, Reason: "it cannot be removed"}
			errs = append(errs, fmt.Errorf("remove %s: %w", d.Name, err))
		}
	}
	return errors.Join(append(errs, h.clear())...)
}

func (h *History) clear() error {
	entries, err := os.ReadDir(h.Folder)
	errs := []error{err}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), removedPrefix) {
			errs = append(errs, os.RemoveAll(filepath.Join(h.Folder, e.Name())))
		}
	}
	return errors.Join(errs...)
}
