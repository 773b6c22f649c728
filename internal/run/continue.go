package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// A replacedRunner is a runner that ended early. The session runs its clients for the remaining time.
type replacedRunner struct {
	runSeconds int   // length of the whole run; 0: no runner is replaced
	startUS    int64 // start of the first of the replaced runners, in Unix microseconds
}

// replace finds the last shard of the runner that this session replaces (--continue), and shortens the plan to the
// remaining time. Without a shard, the runner starts from the beginning, so a pod or a systemd unit can repeat one
// command.
func (s *session) replace(ctx context.Context, now time.Time) error {
	if !s.Continue {
		return nil
	}
	location := s.shardsLocation(results.Dir(filepath.Join(s.Out, s.Plan.TestID)))
	ctx, cancel := context.WithTimeout(withProgress(ctx), claimTimeout)
	defer cancel()
	last, err := lastShard(ctx, location, s.runnerNumber)
	if err != nil {
		return fmt.Errorf("continue runner %d: %w", s.runnerNumber, err)
	}
	if last == nil {
		fmt.Fprintf(s.Stdout, "runner %d of %s has no shard yet; starting it from the beginning\n", s.runnerNumber, s.Plan.TestID)
		s.Continue = false
		return nil
	}
	predecessor, seconds, err := s.remaining(last, location, now)
	if err != nil {
		return UsageError{err}
	}
	s.replacedRunner, s.Plan.Seconds = predecessor, seconds
	return nil
}

// remaining describes a runner that ended early, from its last shard, and returns the seconds until the end of the run.
// It prints when the runner wrote that shard. It returns an error if the runner cannot be replaced.
func (s *session) remaining(last *shard.Shard, location string, now time.Time) (r replacedRunner, seconds int, err error) {
	index := last.Runner.Index
	end := last.Runner.Started().Add(time.Duration(last.Plan.Seconds) * time.Second)
	secondsLeft := last.Runner.SecondsLeft(last.Plan.Seconds, now)
	switch {
	case last.Runner.State == shard.Finished:
		err = fmt.Errorf("it has finished; judge the run with `soak merge %s`", report.Shell(location))
	case last.Published != nil:
		err = errors.New("it published messages, and the messages after its last checkpoint are unknown; repeat the run")
	case last.Runner.State == shard.Aborted:
		err = fmt.Errorf("it ended with an error (%s); repeat the run", last.Runner.Error)
	case secondsLeft <= plan.DisconnectLead:
		err = fmt.Errorf("the run ends, or ended, at %s UTC; judge the run with `soak merge %s`", end.UTC().Format(time.DateTime), report.Shell(location))
	}
	if err != nil {
		return r, 0, fmt.Errorf("continue runner %d: %w", index, err)
	}
	seconds = min(secondsLeft, s.Plan.Seconds)
	fmt.Fprintf(s.Stdout, "runner %d of %s, whose last shard is from %s UTC, is replaced; its clients continue for %d s\n",
		index, s.Plan.TestID, time.UnixMicro(last.Runner.EndedUS).UTC().Format(time.TimeOnly), seconds)
	return replacedRunner{runSeconds: s.Plan.Seconds, startUS: last.Runner.FirstStartUS()}, seconds, nil
}

func lastShard(ctx context.Context, location string, index int) (last *shard.Shard, err error) {
	shards, err := store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	defer shards.Close()
	_, last, err = findShard(ctx, shards, index, "")
	if errors.Is(err, os.ErrNotExist) { // the folder of a run that has not started
		err = nil
	}
	return last, err
}

func (s *session) checkContinue() error {
	switch {
	case !s.Continue:
		return nil
	case s.runnerNumber == 0:
		return errors.New("--continue requires --runner K/N, the runner to replace; to continue a whole run after its soak process was killed, use `soak attach TESTID`")
	case s.Suite.InPlan() != "":
		return fmt.Errorf("--continue requires the suite soak, got %s", s.Suite.Name)
	}
	return nil
}
