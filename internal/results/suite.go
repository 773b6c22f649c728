package results

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// roundPrefix begins the name of the folder of a further round of a suite.
const roundPrefix = "round-"

// Round is the folder of a round of a suite, counted from 0; the first is the run's own.
func (d Dir) Round(n int) (Dir, error) {
	if n == 0 {
		return d, nil
	}
	round := Dir(d.Path(fmt.Sprintf("%s%02d", roundPrefix, n+1)))
	if err := os.MkdirAll(round.Path(ShardsDir), 0o755); err != nil {
		return "", fmt.Errorf("make the folder of a round: %w", err)
	}
	return round, d.need(0, filepath.Base(string(round)))
}

// SuiteRun is what the runners of a suite left in all rounds so far.
func (d Dir) SuiteRun(run Run) (*suite.Run, error) {
	first, problems, err := d.merge(nil)
	if err != nil {
		return nil, err
	}
	first.Problems = append(first.Problems, problems...)
	return d.withRounds(first, run)
}

// withRounds adds the further rounds to the first.
func (d Dir) withRounds(first *shard.Merged, run Run) (*suite.Run, error) {
	out := &suite.Run{Rounds: []*shard.Merged{first}, Failures: run.Failures, Cores: run.Machine.Cores, OneHost: run.OneClock}
	var err error
	if out.Samples, err = resources.Read(d.Path(ResourcesFile)); err != nil {
		first.Problems = append(first.Problems, err.Error())
	}
	if out.Server, err = verdict.ReadServerLedger(d.Path(LedgerFile)); err != nil {
		first.Problems = append(first.Problems, err.Error())
	}
	rounds, err := filepath.Glob(d.Path(roundPrefix + "*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(rounds)
	for _, dir := range rounds {
		m, problems, err := Dir(dir).merge(&first.Plan)
		if err != nil {
			return nil, err
		}
		m.Problems = append(m.Problems, problems...)
		out.Rounds = append(out.Rounds, m)
	}
	return out, nil
}

func (d Dir) judgeSuite(merged *shard.Merged, problems []string, run Run) (*verdict.Verdict, *shard.Merged, error) {
	kind, err := suite.Of(merged.Plan)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d, err)
	}
	r, err := d.withRounds(merged, run)
	if err != nil {
		return nil, nil, err
	}
	problems = append(problems, run.Problems...)
	for i, m := range r.Rounds[1:] {
		for _, problem := range m.Problems {
			problems = append(problems, fmt.Sprintf("round %d: %s", i+2, problem))
		}
	}
	sum := resources.Summarize(r.Samples)
	v := verdict.JudgeSuite(merged, verdict.Facts{
		OneClock: run.OneClock, Problems: problems, Failures: run.Failures, Warnings: run.Warnings,
		Resources: verdict.Resources{BackendRSSMax: sum.BackendRSSMax, BackendCPUAverage: sum.BackendCPUPercent, NginxRSSMax: sum.NginxRSSMax},
	}, kind.Assess(r))
	return v, merged, nil
}
