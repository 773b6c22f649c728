package results

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// roundPrefix is the prefix of the folder of each round after the first.
const roundPrefix = "round-"

// Round creates the folder of a round, counted from 0, and adds it to the manifest. Round 0 uses the folder of the run.
func (d Dir) Round(n int) (Dir, error) {
	if n == 0 {
		return d, nil
	}
	round := Dir(d.Path(fmt.Sprintf("%s%02d", roundPrefix, n+1)))
	if err := makeFolder(round.Path(ShardsDir)); err != nil {
		return "", fmt.Errorf("make the folder of a round: %w", err)
	}
	return round, d.require(0, filepath.Base(string(round)))
}

// SuiteRun returns the evidence of all rounds so far.
func (d Dir) SuiteRun(run RunRecord) (*suite.Run, error) {
	first, problems, err := d.merge(nil)
	if err != nil {
		return nil, err
	}
	first.Problems = append(first.Problems, problems...)
	e, err := d.evidence(first, run, d.serverLedger())
	return (*suite.Run)(e), err
}

// evidence returns the evidence of a verdict. An unreadable file is a problem, but only a warning for optional samples.
func (d Dir) evidence(merged *shard.Merged, run RunRecord, ledger ledgerReader) (*verdict.Evidence, error) {
	kind, err := suite.ByName(merged.Plan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	e := &verdict.Evidence{
		Rounds: []*shard.Merged{merged}, Cores: run.Machine.Cores, OneHost: run.OneClock, ServiceCores: len(run.ServiceCores), RunnerCores: len(run.RunnerCores),
		Failures: run.Failures, Unreachable: run.Unreachable, Warnings: run.Warnings, Actions: run.Actions,
	}
	first := 0
	if len(merged.Runners) > 0 {
		first = merged.Runners[0].Index
	}
	e.RunInfo = d.runInfo(first)
	if kind.Target.Kind == suite.Model {
		e.Model, err = d.modelLedger(merged)
	} else {
		e.Server, err = d.ledgerOf(merged, ledger)
	}
	if err != nil {
		e.Problems = append(e.Problems, err.Error())
	}
	e.Samples, err = resources.Read(d.Path(ResourcesFile))
	switch {
	case err != nil && kind.Sampling.Optional:
		e.Warnings = append(e.Warnings, err.Error())
	case err != nil:
		e.Problems = append(e.Problems, err.Error())
	}
	if e.Machines, err = d.machines(); err != nil {
		e.Problems = append(e.Problems, err.Error())
	}
	e.Problems, e.RunnerEnds = append(e.Problems, run.Problems...), run.RunnerEnds
	rounds, err := filepath.Glob(d.Path(roundPrefix + "*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(rounds)
	roundPlan := merged.Plan
	roundPlan.Connections = 0 // the scripts of a round declare their own load
	for i, dir := range rounds {
		m, problems, err := Dir(dir).merge(&roundPlan)
		if err != nil {
			return nil, err
		}
		for _, problem := range append(m.Problems, problems...) {
			e.Problems = append(e.Problems, fmt.Sprintf("round %d: %s", i+2, problem))
		}
		e.Rounds = append(e.Rounds, m)
	}
	return e, nil
}

// machines returns the records of machines from a Prometheus server, or nil if the run has no such file.
func (d Dir) machines() (records []*machine.Record, err error) {
	if _, err := d.readJSON(MachinesFile, &records); err != nil {
		return nil, err
	}
	for _, m := range records {
		if m == nil {
			return nil, fmt.Errorf("read %s: it lists an empty machine", d.Path(MachinesFile))
		}
		if err := m.Check(); err != nil {
			return nil, fmt.Errorf("read %s: %w", d.Path(MachinesFile), err)
		}
	}
	return records, nil
}
