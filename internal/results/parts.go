package results

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A RunRecord has the observations of `soak run` that the runners cannot make: run.json.
type RunRecord struct {
	report.Provenance
	ServiceCores []int                   `json:"service_cores,omitempty"` // numbers of the reserved cores
	RunnerCores  []int                   `json:"runner_cores,omitempty"`
	Problems     []string                `json:"problems,omitempty"` // why the run is incomplete
	RunnerEnds   []shard.RunnerEnd       `json:"runner_ends,omitempty"`
	Failures     []verdict.TargetFailure `json:"failures,omitempty"`    // of the target
	Unreachable  []string                `json:"unreachable,omitempty"` // sentences about addresses of the target that did not respond at the end
	Warnings     []string                `json:"warnings,omitempty"`
	Actions      []verdict.ActionResult  `json:"actions,omitempty"` // of --at, in their order
}

// Join creates the folder for the part of a run with the given runner. Parts may share a folder. An existing file of
// the runner is an error.
func Join(out, testid string, runner int) (Dir, error) {
	d := Dir(filepath.Join(out, testid))
	shardPaths, err := d.shardFiles()
	if err != nil {
		return "", err
	}
	for _, path := range append(shardPaths, d.Path(RunName(runner))) {
		index, isShard := shard.IndexOf(filepath.Base(path))
		if _, err := os.Stat(path); err == nil && (!isShard || index == runner) {
			return "", fmt.Errorf("%s exists already; choose another --testid, or remove it", path)
		}
	}
	return Rejoin(out, testid)
}

// Rejoin is Join for a runner that replaces an earlier one, whose files may exist.
func Rejoin(out, testid string) (Dir, error) {
	d := Dir(filepath.Join(out, testid))
	if err := makeFolder(d.Path(ShardsDir)); err != nil {
		return "", folderError(err)
	}
	return d, nil
}

// Run returns run.json or, in a run in parts, the record of the runner with index first. It returns an empty record if
// the file cannot be read.
func (d Dir) Run(first int) RunRecord {
	var run RunRecord
	exists, err := d.readJSON(RunFile, &run)
	if err == nil && !exists {
		_, err = d.readJSON(RunName(first), &run)
	}
	if err != nil {
		return RunRecord{}
	}
	return run
}

// runInfo returns the programs and the machine of the run, or nil if no file has them. first is the index of the first
// runner.
func (d Dir) runInfo(first int) *verdict.RunInfo {
	run := d.Run(first)
	if info := run.runInfo(); info != nil {
		return info
	}
	for _, part := range []int{0, first} {
		if m, _, err := d.manifest(part); err == nil && m.RunInfo != nil {
			return m.RunInfo
		}
	}
	return nil
}

func (run *RunRecord) runInfo() *verdict.RunInfo {
	if run.Version == "" && len(run.Command) == 0 {
		return nil
	}
	return &verdict.RunInfo{
		Command: run.Command, Commit: run.Commit, Soak: run.Version, Go: run.Go, Backend: run.Backend, Nginx: run.Nginx, Machine: run.Machine,
	}
}

// readRecord reads a record, if the file exists. It rejects null, which would decode to a record without problems and
// failures.
func (d Dir) readRecord(name string, record *RunRecord) error {
	decoded := record
	if exists, err := d.readJSON(name, &decoded); !exists || err != nil {
		return err
	}
	if decoded == nil {
		return fmt.Errorf("read %s: the record is null; copy the file again from the machine that started the run", d.Path(name))
	}
	return nil
}

// readRun reads run.json and adds the records of parts. It puts the number of the runner before each sentence of a
// part.
func (d Dir) readRun(runners []shard.Runner) (run RunRecord, err error) {
	if err := d.readRecord(RunFile, &run); err != nil {
		return run, err
	}
	for _, r := range runners {
		if r.Replaced {
			continue // the record with this index belongs to the runner that replaced r
		}
		var part RunRecord
		if err := d.readRecord(RunName(r.Index), &part); err != nil {
			return run, err
		}
		run.Actions, run.RunnerEnds = append(run.Actions, part.Actions...), append(run.RunnerEnds, part.RunnerEnds...)
		for _, f := range part.Failures {
			f.Text = fmt.Sprintf("runner %d: %s", r.Index, f.Text)
			run.Failures = append(run.Failures, f)
		}
		for _, l := range []struct{ to, from *[]string }{
			{&run.Problems, &part.Problems}, {&run.Unreachable, &part.Unreachable}, {&run.Warnings, &part.Warnings},
		} {
			for _, sentence := range *l.from {
				*l.to = append(*l.to, fmt.Sprintf("runner %d: %s", r.Index, sentence))
			}
		}
	}
	return run, nil
}

// A ledgerReader returns the server's ledger of a run without parts, or nil if the server has no ledger. It reads the
// file once.
type ledgerReader func() (verdict.ServerLedger, error)

func (d Dir) serverLedger() ledgerReader {
	return sync.OnceValues(func() (verdict.ServerLedger, error) { return verdict.ReadServerLedger(d.Path(LedgerFile)) })
}

// modelLedger returns the ledger of the numbered model, merged from all parts of a run, or nil if no part has one.
func (d Dir) modelLedger(m *shard.Merged) (verdict.ModelLedger, error) {
	l, err := verdict.ReadModelLedger(nil, d.Path(LedgerFile))
	for _, r := range m.Runners {
		if err != nil {
			break
		}
		l, err = verdict.ReadModelLedger(l, d.Path(LedgerName(r.Index)))
	}
	return l, err
}

// ledgerOf returns the server's ledger, or nil if no part has one. Each part of a run reads the ledger after the end of
// its own streams, so ledgerOf uses the entry from the part that opened the stream. It returns an error if only some
// parts have a ledger, because the messages of the other parts would count as lost by the server.
func (d Dir) ledgerOf(m *shard.Merged, ledger ledgerReader) (verdict.ServerLedger, error) {
	merged, err := ledger()
	if merged != nil || err != nil {
		return merged, err
	}
	parts, storedCount, requiredCount := make([]verdict.ServerLedger, len(m.Runners)), 0, 0
	for i, r := range m.Runners {
		if parts[i], err = verdict.ReadServerLedger(d.Path(LedgerName(r.Index))); err != nil {
			return nil, err
		}
		if r.EndedEarly() { // its entries are not compared
			continue
		}
		requiredCount++
		if parts[i] != nil {
			storedCount++
		}
	}
	switch storedCount {
	case 0:
		return nil, nil
	case requiredCount:
	default:
		return nil, fmt.Errorf("%d of %d runners stored the backend's ledger, so the last noops cannot be checked", storedCount, requiredCount)
	}
	merged = make(verdict.ServerLedger, m.Connections.Len())
	for _, c := range m.Connections.All() {
		if entry, ok := parts[c.Runner][c.ID]; ok {
			merged[c.ID] = entry
		}
	}
	return merged, nil
}
