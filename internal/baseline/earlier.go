package baseline

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Earlier are the runs in the folder out that passed, had the plan of run and started before it,
// the latest first. What cannot be read is no run.
func Earlier(out string, run Run) ([]Run, error) {
	entries, err := os.ReadDir(out)
	if err != nil {
		return nil, err
	}
	var found []Run
	for _, e := range entries {
		if !e.IsDir() { // `latest` is a link to one of them
			continue
		}
		r, err := Read(filepath.Join(out, e.Name()))
		if err != nil || r.Verdict.Verdict != verdict.Pass || r.Verdict.StartedUnix >= run.Verdict.StartedUnix || SamePlan(r, run) != nil {
			continue
		}
		found = append(found, r)
	}
	slices.SortFunc(found, func(a, b Run) int { return cmp.Compare(b.Verdict.StartedUnix, a.Verdict.StartedUnix) })
	return found, nil
}

// SamePlan says in what two runs differ that has to be the same to compare them.
func SamePlan(a, b Run) error { return samePlan([]Run{a, b}) }
