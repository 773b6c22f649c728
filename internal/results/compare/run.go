// Package compare compares runs of one plan. It computes the median and the spread of several runs, and the band in
// which the mean of further runs should fall. It decides whether two sets of runs differ by more than chance explains.
package compare

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Run is the folder of a run with a verdict.
type Run struct {
	Dir     string
	Verdict *verdict.Verdict

	plan          map[string]any // the values that must be equal
	otherSettings map[string]any // settings that change no metric
}

// Read reads the verdict.json of a run. It returns an error for an invalid run, whose metrics are not comparable.
func Read(dir string) (Run, error) {
	r, err := Open(dir)
	if err == nil && r.Verdict.Verdict == verdict.Invalid {
		err = fmt.Errorf("%s is invalid (%s), so it cannot be compared", dir, append(r.Verdict.Reasons, "without a reason")[0])
	}
	return r, err
}

// Folders compares the runs in the folders recent with the runs of the same plan in the folders old.
func Folders(old, recent []string, tolerance float64) (*Comparison, error) {
	older, err := readFolders(old)
	if err != nil {
		return nil, err
	}
	newer, err := readFolders(recent)
	if err != nil {
		return nil, err
	}
	return Compare(older, newer, tolerance)
}

func readFolders(folders []string) ([]Run, error) {
	runs := make([]Run, 0, len(folders))
	for _, folder := range folders {
		r, err := Read(folder)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// Open reads the verdict.json of a run with any verdict, and the provenance of the run, if it has one.
func Open(dir string) (Run, error) {
	r := Run{Dir: dir}
	path := filepath.Join(dir, "verdict.json")
	var content struct {
		Schema int            `json:"schema"`
		Plan   map[string]any `json:"plan"`
	}
	err := safefile.JSON(path, safefile.Verdict, &content)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%s has no verdict.json; run `soak merge %[1]s` to write it", dir)
	}
	if err != nil {
		return r, err //nolint:wrapcheck // names the file
	}
	if len(content.Plan) > 0 {
		if err := verdict.CheckSchema(content.Schema); err != nil {
			return r, fmt.Errorf("read %s: %w; delete it and run `soak merge %s`", path, err, dir)
		}
		if err := safefile.JSON(path, safefile.Verdict, &r.Verdict); err != nil {
			return r, err //nolint:wrapcheck // names the file
		}
	}
	if r.Verdict == nil || len(content.Plan) == 0 {
		return r, fmt.Errorf("%s is not a verdict: it has no plan", path)
	}
	if err := plan.CheckTestID(r.Verdict.TestID); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	r.plan, r.otherSettings = content.Plan, map[string]any{}
	if parameters, ok := r.plan["parameters"].(map[string]any); ok { // settings of the script
		delete(r.plan, "parameters")
		maps.Copy(r.plan, parameters)
	}
	for _, random := range []string{"testid", "run_id", "prefix", "marker", "control_url"} { // may differ between runs of one plan
		delete(r.plan, random)
	}
	for _, name := range []string{"end_timeout_s", "max_outage_s", "back_within_s", "max_hidden", "control"} {
		if value, ok := r.plan[name]; ok {
			r.otherSettings[name] = value
			delete(r.plan, name)
		}
	}
	if v := r.Verdict; v.Service.Name != "" { // the path of its description does not matter
		r.plan["service"], r.plan["description"] = v.Plan.ServiceName(), v.Service.SHA256
	}
	if actions := r.actions(); actions != "" {
		r.plan["actions"] = actions
	}
	if run := readProvenance(dir); run.OneClock {
		delete(r.plan, "backend_url")
		if len(run.ServiceCores) > 0 {
			r.plan["cores"] = fmt.Sprintf("CPUs %v for the service and %v for the runners", run.ServiceCores, run.RunnerCores)
		} else if run.Cores != "" {
			r.plan["cores"] = run.Cores
		}
	}
	return r, nil
}

// actions returns the actions on the service with their times, because runs with different ones cannot be compared.
func (r Run) actions() string {
	var list []string
	for _, a := range r.Verdict.Actions {
		list = append(list, fmt.Sprintf("%s: %s", a.At, a.Command))
	}
	return strings.Join(list, "; ")
}

// provenance has the fields of run.json that decide, in addition to the plan, whether runs can be compared.
type provenance struct {
	OneClock     bool   `json:"one_clock"`     // soak started the target, whose address is random
	Cores        string `json:"cores"`         // why no cores are reserved, or a description of the reserved ones
	ServiceCores []int  `json:"service_cores"` // numbers of the cores reserved for the target; empty if no core is reserved
	RunnerCores  []int  `json:"runner_cores"`
}

// readProvenance reads run.json. It returns an empty value if the file cannot be read.
func readProvenance(dir string) (run provenance) {
	if safefile.JSON(filepath.Join(dir, "run.json"), safefile.Verdict, &run) != nil {
		return provenance{}
	}
	return run
}

// MaxEarlier is the maximum number of earlier runs that define the normal range: the latest ones.
const MaxEarlier = 10

// EarlierRuns returns the candidates that passed and started before run, the latest first, at most MaxEarlier. All
// candidates must have the plan of run.
func EarlierRuns(candidates []Run, run Run) []Run {
	var earlier []Run
	for _, r := range candidates {
		if r.Verdict.Verdict == verdict.Pass && r.Verdict.StartedUnix < run.Verdict.StartedUnix {
			earlier = append(earlier, r)
		}
	}
	slices.SortFunc(earlier, func(a, b Run) int { return cmp.Compare(b.Verdict.StartedUnix, a.Verdict.StartedUnix) })
	return earlier[:min(len(earlier), MaxEarlier)]
}

// SamePlan returns an error with the first difference if two runs cannot be compared.
func SamePlan(a, b Run) error {
	for _, d := range differences(a.plan, b.plan) {
		return fmt.Errorf("%s and %s have different plans: %s is %s in the first and %s in the second", a.Dir, b.Dir, d.Name, d.First, d.Second)
	}
	return nil
}

// Plan returns the settings that must be equal to compare runs, as text. Runs with the same text have the same plan.
func (r Run) Plan() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(r.plan)) {
		fmt.Fprintf(&b, "%s=%s\n", key, setting(r.plan, key))
	}
	return b.String()
}

// A Setting is a setting that differs between two runs.
type Setting struct{ Name, First, Second string }

// Settings returns the settings in which two runs differ, including those that do not prevent a comparison.
func Settings(a, b Run) []Setting {
	return append(differences(a.plan, b.plan), differences(a.otherSettings, b.otherSettings)...)
}

func differences(a, b map[string]any) (out []Setting) {
	union := maps.Clone(a)
	maps.Copy(union, b)
	for _, key := range slices.Sorted(maps.Keys(union)) {
		if first, second := setting(a, key), setting(b, key); first != second {
			out = append(out, Setting{key, first, second})
		}
	}
	return out
}

// setting formats the value of a setting: "missing" if the plan does not have it, "empty" for an empty value.
func setting(plan map[string]any, key string) string {
	value, ok := plan[key]
	if !ok {
		return "missing"
	}
	return cmp.Or(fmt.Sprint(value), "empty")
}

func (r Run) hosts() string {
	var hosts []string
	for _, runner := range r.Verdict.Runners {
		hosts = append(hosts, runner.Host)
	}
	slices.Sort(hosts)
	return fmt.Sprint(slices.Compact(hosts))
}
