package baseline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Run is one folder of a run, judged.
type Run struct {
	Dir     string
	Verdict *verdict.Verdict

	plan map[string]any // what has to be the same
}

// Read reads the verdict.json of a run. A run that is invalid is refused: it proves nothing,
// so it is no part of what is normal either.
func Read(dir string) (Run, error) {
	r := Run{Dir: dir}
	path := filepath.Join(dir, "verdict.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%s holds no verdict.json: it is not the folder of a run that was judged (`soak merge %s` judges it)", dir, dir)
	}
	if err != nil {
		return r, fmt.Errorf("read the verdict of %s: %w", dir, err)
	}
	var whole struct {
		Plan map[string]any `json:"plan"`
	}
	if err := errors.Join(json.Unmarshal(b, &r.Verdict), json.Unmarshal(b, &whole)); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	if r.Verdict == nil || len(whole.Plan) == 0 {
		return r, fmt.Errorf("%s is no verdict: it holds no plan", path)
	}
	if r.Verdict.Verdict == verdict.Invalid {
		return r, fmt.Errorf("%s is invalid (%s): it proves nothing, so it cannot be compared", dir, first(r.Verdict.Reasons))
	}
	r.plan = whole.Plan
	for _, changes := range []string{"testid", "run_id", "prefix", "end_timeout_s", "max_outage_s", "max_hidden"} { // with every run, or none of its figures
		delete(r.plan, changes)
	}
	if ownTarget(dir) {
		delete(r.plan, "backend_url")
	}
	return r, nil
}

// ownTarget says that soak started the target itself: then its address is drawn at random.
func ownTarget(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return false
	}
	var run struct {
		OneClock bool `json:"one_clock"`
	}
	return json.Unmarshal(b, &run) == nil && run.OneClock
}

func first(sentences []string) string {
	if len(sentences) == 0 {
		return "it does not say why"
	}
	return sentences[0]
}

// samePlan names the first thing in which a run had another plan than the first of them.
func samePlan(runs []Run) error {
	want := runs[0]
	for _, r := range runs[1:] {
		keys := slices.Sorted(maps.Keys(want.plan))
		for key := range r.plan {
			if _, ok := want.plan[key]; !ok {
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			if a, b := fmt.Sprint(want.plan[key]), fmt.Sprint(r.plan[key]); a != b {
				return fmt.Errorf("%s and %s are not of one plan: %s is %s in the one and %s in the other", want.Dir, r.Dir, key, value(a), value(b))
			}
		}
	}
	return nil
}

func value(v string) string {
	switch v {
	case "<nil>":
		return "not there"
	case "":
		return "empty"
	}
	return v
}

// machines are the hosts on which the runners of a run were.
func (r Run) machines() []string {
	hosts := map[string]bool{}
	for _, runner := range r.Verdict.Runners {
		hosts[runner.Host] = true
	}
	return slices.Sorted(maps.Keys(hosts))
}
