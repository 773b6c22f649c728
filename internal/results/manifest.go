package results

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// ManifestFile lists the files that a run must have. soak writes it before the first runner starts, so that a missing
// file cannot turn a failure into a pass.
const ManifestFile = "manifest.json"

// A Manifest is the content of ManifestFile.
type Manifest struct {
	RunID string   `json:"run_id"` // the same as in the shards of its runners
	Needs []string `json:"needs"`  // files and folders without which there is no verdict
	// RunInfo describes the programs and the machine of the run before its target starts. run.json has the complete
	// description, but a killed run leaves no run.json.
	RunInfo *verdict.RunInfo `json:"run_info,omitempty"`
}

// ManifestName, RunName and LedgerName return the file names of a part. If the parts of a run were started on several
// machines, each part has its own files, numbered by its runner. Part 0 is the whole run.
func ManifestName(part int) string { return partName(ManifestFile, part) }
func RunName(part int) string      { return partName(RunFile, part) }
func LedgerName(part int) string   { return partName(LedgerFile, part) }

func partName(name string, part int) string {
	if part == 0 {
		return name
	}
	suffix := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, suffix), part, suffix)
}

// Evidence lists the files that a verdict uses in addition to shards. A run may have only some of them. Only the first
// of several machines samples the target and queries Prometheus.
func Evidence(part int) []string {
	names := []string{PlanFile, RunName(part), LedgerName(part)}
	if part <= 1 {
		names = append(names, ResourcesFile, MachinesFile)
	}
	return names
}

// requiredFiles lists the evidence that each run must have: the plan, and the observations of `soak run`.
func requiredFiles(part int) []string { return Evidence(part)[:2] }

// NewManifest returns the manifest of a run or part before its start. ledger states whether the run or part must have
// the ledger of its service.
func NewManifest(part int, runID string, ledger bool, run *RunRecord) Manifest {
	needs := requiredFiles(part)
	if ledger {
		needs = append(needs, LedgerName(part))
	}
	return Manifest{RunID: runID, Needs: needs, RunInfo: run.runInfo()}
}

// WriteManifest writes the manifest of a run, or of a part of it.
func (d Dir) WriteManifest(part int, m Manifest) error { return d.WriteJSON(ManifestName(part), m) }

// Seal adds the files of the finished run to the manifest before the run is judged.
func (d Dir) Seal(part int) error {
	var names []string
	for _, name := range Evidence(part) {
		if d.exists(name) {
			names = append(names, name)
		}
	}
	return d.require(part, names...)
}

// require adds names to the manifest of a part. The verdict then needs these files and folders.
func (d Dir) require(part int, names ...string) error {
	var m Manifest
	if _, err := d.readJSON(ManifestName(part), &m); err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(m.Needs, name) {
			m.Needs = append(m.Needs, name)
		}
	}
	return d.WriteJSON(ManifestName(part), m)
}

// exists reports whether the folder has a file or a folder with this name. It returns false for a name outside of the
// folder.
func (d Dir) exists(name string) bool {
	_, err := os.Stat(d.Path(name))
	return err == nil && filepath.IsLocal(name)
}

// checkManifests returns problems for the missing files of the run, or of its parts.
func (d Dir) checkManifests(p plan.Plan, runners []shard.Runner) (problems []string) {
	manifest, exists, err := d.manifest(0)
	problems = append(problems, manifest.missingFiles(d)...)
	switch {
	case err != nil:
		problems = append(problems, err.Error())
	case !exists && p.RunID != "":
		problems = append(problems, d.Path(ManifestFile)+" is missing, so the files that this run must have are unknown")
	}
	if exists {
		return problems // the merge compares the shards with the run id of the plan
	}
	indexes := map[int]bool{}
	for _, r := range runners {
		if r.Replaced || r.RunID == "" || p.RunID != "" || indexes[r.Index] {
			continue // a runner without a run id is k6 alone, which writes no manifest
		}
		indexes[r.Index] = true
		m, exists, err := d.manifest(r.Index)
		switch {
		case err != nil:
			problems = append(problems, err.Error())
		case !exists:
			problems = append(problems, fmt.Sprintf("%s or %s must list the files of the run of %s, but neither exists; merge the whole folder of that run",
				d.Path(ManifestFile), ManifestName(r.Index), r.String()))
		case m.RunID != r.RunID:
			problems = append(problems, fmt.Sprintf("the shard of %s belongs to a different run than %s; remove the older file", r.String(), ManifestName(r.Index)))
		}
		problems = append(problems, m.missingFiles(d)...)
	}
	return problems
}

func (d Dir) manifest(part int) (m Manifest, exists bool, err error) {
	exists, err = d.readJSON(ManifestName(part), &m)
	required := requiredFiles(part)
	isMissing := func(name string) bool { return !slices.Contains(m.Needs, name) }
	if err == nil && exists && slices.ContainsFunc(required, isMissing) {
		err = fmt.Errorf("%s must list %s, got %s; copy it again from the machine that started the run",
			d.Path(ManifestName(part)), strings.Join(required, " and "), cmp.Or(strings.Join(m.Needs, ", "), "no files"))
	}
	return m, exists, err
}

func (m Manifest) missingFiles(d Dir) (problems []string) {
	for _, name := range m.Needs {
		if !d.exists(name) {
			problems = append(problems, fmt.Sprintf("%s is missing, and the verdict of this run requires it", d.Path(name)))
		}
	}
	return problems
}
