// Package baseline says what is normal for a plan: the median and the spread of several runs
// of it, the band in which one more run should fall, and whether two sets of runs differ by
// more than chance. A single run says nothing of that.
package baseline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
		return r, fmt.Errorf("%s is invalid (%s): it proves nothing, so it cannot be compared", dir, append(r.Verdict.Reasons, "it does not say why")[0])
	}
	r.plan = whole.Plan
	for _, changes := range []string{"testid", "run_id", "prefix", "end_timeout_s", "max_outage_s", "back_within_s", "max_hidden", "marker", "control", "control_url"} { // with every run, or without changing a metric
		delete(r.plan, changes)
	}
	if v := r.Verdict; v.Plan.Described() { // wherever its description lies
		r.plan["service"] = v.Plan.ServiceName()
		if v.Service != nil {
			r.plan["description"] = v.Service.SHA256
		}
	}
	if actions := r.actions(); actions != "" {
		r.plan["actions"] = actions
	}
	if ownTarget(dir) {
		delete(r.plan, "backend_url")
	}
	return r, nil
}

// actions are what was done to the service, and when: a run with a deploy is not held against one without.
func (r Run) actions() string {
	var all []string
	for _, a := range r.Verdict.Actions {
		all = append(all, fmt.Sprintf("%s: %s", a.At, a.Command))
	}
	return strings.Join(all, "; ")
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
func SamePlan(a, b Run) error {
	all := maps.Clone(a.plan)
	maps.Copy(all, b.plan)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if in, other := a.setting(key), b.setting(key); in != other {
			return fmt.Errorf("%s and %s are not of one plan: %s is %s in the one and %s in the other", a.Dir, b.Dir, key, in, other)
		}
	}
	return nil
}

func (r Run) setting(key string) string {
	value, ok := r.plan[key]
	if !ok {
		return "not there"
	}
	return cmp.Or(fmt.Sprint(value), "empty")
}

// machines are the hosts on which the runners of a run were.
func (r Run) machines() string {
	var hosts []string
	for _, runner := range r.Verdict.Runners {
		hosts = append(hosts, runner.Host)
	}
	slices.Sort(hosts)
	return fmt.Sprint(slices.Compact(hosts))
}
