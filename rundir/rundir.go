// Package rundir is the folder of one run, results/TESTID: which file holds what, and how a
// verdict and its reports are made from them, as often as anyone likes.
package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/plan"
	"github.com/sse-soak/sse-soak/report"
	"github.com/sse-soak/sse-soak/resources"
	"github.com/sse-soak/sse-soak/shard"
	"github.com/sse-soak/sse-soak/verdict"
)

// The files of a run.
const (
	PlanFile      = "plan.json"
	RunFile       = "run.json"
	LedgerFile    = "backend-ledger.ndjson"
	ResourcesFile = "resources.ndjson"
	VerdictFile   = "verdict.json"
	ShardsDir     = "shards"
)

// A Run is what `soak run` saw that the runners could not: run.json.
type Run struct {
	Command  []string          `json:"command"`
	Version  string            `json:"version"`
	OneClock bool              `json:"one_clock"` // target and runners are on this host
	Nginx    string            `json:"nginx,omitempty"`
	Backend  string            `json:"backend,omitempty"` // version, where it is one of ours
	Machine  resources.Machine `json:"machine"`           // of `soak run`
	// ResourcesFrom is the Prometheus that resources.ndjson comes from, "" when soak sampled itself.
	ResourcesFrom string   `json:"resources_from,omitempty"`
	Problems      []string `json:"problems,omitempty"` // why the run is incomplete
	Failures      []string `json:"failures,omitempty"` // of the target
	Warnings      []string `json:"warnings,omitempty"`
}

// A Dir is the folder of a run.
type Dir string

// Path is the path of a file in it.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// NewTestID is the time, with a number behind it where that folder exists already.
func NewTestID(out string, now time.Time) string {
	id := now.UTC().Format("20060102-150405")
	for n, try := 2, id; ; n++ {
		if _, err := os.Stat(filepath.Join(out, try)); err != nil {
			return try
		}
		try = fmt.Sprintf("%s-%d", id, n)
	}
}

// Create makes the folder of a new run and points `latest` beside it to it.
func Create(out, testid string) (Dir, error) {
	d := Dir(filepath.Join(out, testid))
	if _, err := os.Stat(string(d)); err == nil {
		return "", fmt.Errorf("%s exists already: choose another --testid, or remove it", d)
	}
	if err := os.MkdirAll(d.Path(ShardsDir), 0o755); err != nil {
		return "", fmt.Errorf("make the results folder: %w", err)
	}
	latest := filepath.Join(out, "latest")
	if info, err := os.Lstat(latest); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return d, nil // someone's own file: leave it
	}
	_ = os.Remove(latest)
	_ = os.Symlink(testid, latest) // a convenience: where links are not to be had, it is done without
	return d, nil
}

// WriteJSON stores v as indented JSON.
func (d Dir) WriteJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return d.Write(name, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// Write stores a file, whole or not at all.
func (d Dir) Write(name string, fill func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(string(d), "."+name+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", d.Path(name), err)
	}
	err = errors.Join(fill(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), d.Path(name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", d.Path(name), err), os.Remove(f.Name()))
	}
	return nil
}

func (d Dir) readJSON(name string, v any) (there bool, err error) {
	b, err := os.ReadFile(d.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", d.Path(name), err)
	}
	return true, nil
}

// shards reads all shards. One that cannot be read is a problem of the run, not the end.
func (d Dir) shards() (all []*shard.Shard, problems []string, err error) {
	paths, err := filepath.Glob(d.Path(filepath.Join(ShardsDir, "*.json.gz")))
	if err != nil {
		return nil, nil, err
	}
	if len(paths) == 0 { // a bare folder of shards, as two laptops would bring together
		if paths, err = filepath.Glob(d.Path("*.json.gz")); err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		s, err := shard.ReadFile(p)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		all = append(all, s)
	}
	return all, problems, nil
}

// Judge makes the verdict from the files.
func (d Dir) Judge() (*verdict.Verdict, *shard.Merged, error) {
	if info, err := os.Stat(string(d)); err != nil || !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a folder of a run", d)
	}
	shards, problems, err := d.shards()
	if err != nil {
		return nil, nil, err
	}
	p, err := d.plan(shards)
	if err != nil {
		return nil, nil, err
	}
	var run Run
	if _, err := d.readJSON(RunFile, &run); err != nil {
		return nil, nil, err
	}
	server, err := verdict.ReadServerLedger(d.Path(LedgerFile))
	if err != nil {
		problems = append(problems, err.Error())
	}
	samples, err := resources.Read(d.Path(ResourcesFile))
	if err != nil {
		run.Warnings = append(run.Warnings, err.Error())
	}
	merged := shard.Merge(p, shards)
	sum := resources.Summarize(samples)
	v := verdict.Judge(merged, server, verdict.Facts{
		OneClock: run.OneClock, Problems: append(problems, run.Problems...), Failures: run.Failures, Warnings: run.Warnings,
		Resources: verdict.Resources{BackendRSSMax: sum.BackendRSSMax, BackendCPUAverage: sum.BackendCPUPercent, NginxRSSMax: sum.NginxRSSMax},
	})
	return v, merged, nil
}

// plan is plan.json, or what the runners say where `soak run` did not start them.
func (d Dir) plan(shards []*shard.Shard) (p plan.Plan, err error) {
	there, err := d.readJSON(PlanFile, &p)
	switch {
	case err != nil:
		return p, err
	case there:
		return p, p.Check()
	case len(shards) == 0:
		return p, fmt.Errorf("%s holds neither %s nor a readable shard: it is not a folder of a run", d, PlanFile)
	}
	p = shards[0].Plan
	if err := p.Check(); err != nil {
		return p, fmt.Errorf("the shards in %s are of no soak: %w", d, err)
	}
	p.TestID, p.MaxLate = shards[0].Runner.TestID, -1
	p.Runners = max(p.Runners, len(shards))
	return p, nil
}

// Report writes verdict.json and every report beside it.
func (d Dir) Report(v *verdict.Verdict, m *shard.Merged) error {
	samples, err := resources.Read(d.Path(ResourcesFile))
	if err != nil {
		samples = nil // already a warning of the verdict
	}
	return errors.Join(
		d.WriteJSON(VerdictFile, v),
		d.Write("report.txt", func(w io.Writer) error { return report.Text(w, v) }),
		d.Write("report.md", func(w io.Writer) error { return report.Markdown(w, v) }),
		d.Write("connections.csv", func(w io.Writer) error { return report.Connections(w, m) }),
		d.Write("series.csv", func(w io.Writer) error { return report.Series(w, m, samples) }),
	)
}

// Relative is the folder as a person would type it.
func (d Dir) Relative() string {
	wd, err := os.Getwd()
	if err != nil {
		return string(d)
	}
	rel, err := filepath.Rel(wd, string(d))
	if err != nil || strings.HasPrefix(rel, "..") {
		return string(d)
	}
	return rel
}
