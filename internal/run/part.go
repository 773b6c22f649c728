package run

import (
	"bytes"
	"context"
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// finishPart delivers the files of a part of a run, and prints the counts of its runner. It makes no verdict, because a
// verdict needs all parts.
func (s *session) finishPart(graceful, force context.Context) (verdict.Outcome, error) {
	if err := s.deliver(graceful, force); err != nil {
		return "", err
	}
	ctx, cancel := storageContext(graceful, force, deliverTimeout)
	defer cancel()
	shards, err := store.Open(ctx, s.location)
	if err != nil {
		return "", err
	}
	defer shards.Close()
	name, last, err := findShard(ctx, shards, s.runnerNumber, s.Plan.RunID)
	if err == nil && last == nil {
		err = fmt.Errorf("runner %d left no shard in %s", s.runnerNumber, shards.At(""))
	}
	if err != nil {
		return "", err
	}
	outcome := s.reportPart(last)
	location := s.location
	if s.Shards == "" {
		location = s.dir.Relative()
	}
	fmt.Fprintf(s.Stdout, "shard   %s\nno verdict yet; when all parts have finished, judge them with `soak merge %s`\n",
		shards.At(name), report.Shell(location))
	return outcome, nil
}

// findShard returns the shard of the most recent start of the runner with the given index, and the shard's name; nil if
// none matches. A runner and each of its replacements leave one shard. runID is the id of the run; "": any.
func findShard(ctx context.Context, shards store.Store, index int, runID string) (name string, last *shard.Shard, err error) {
	err = eachShard(ctx, shards, index, func(candidateName string, candidate *shard.Shard) {
		if (runID == "" || candidate.Runner.RunID == runID) && (last == nil || candidate.Runner.StartedUS > last.Runner.StartedUS) {
			name, last = candidateName, candidate
		}
	})
	return name, last, err
}

// eachShard calls read with each shard of the runner with the given index, or of all runners if index is 0. It includes
// the shards of other runs at the same location.
func eachShard(ctx context.Context, shards store.Store, index int, read func(name string, s *shard.Shard)) error {
	names, err := shards.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		runner, ok := shard.IndexOf(name)
		if !ok || index > 0 && runner != index {
			continue
		}
		data, err := shards.Get(ctx, name)
		if err != nil {
			return fmt.Errorf("read the shard of runner %d: %w", runner, err)
		}
		s, err := shard.Read(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("read the shard of runner %d, %s: %w", runner, shards.At(name), err)
		}
		read(name, s)
	}
	return nil
}

func (s *session) reportPart(result *shard.Shard) verdict.Outcome {
	var sum shard.Progress
	outcome, withoutMessage := verdict.Pass, 0
	for r := range result.Records() {
		sum.Count(r)
		isSilent := s.Suite.Plan.BySettings && s.service.CountsMessages() && r.Received == 0
		if isSilent {
			withoutMessage++
		}
		if isSilent || r.State != ledger.Completed || r.Missed()+r.Faults() > 0 {
			outcome = verdict.Fail
		}
	}
	for _, p := range s.record.Problems {
		fmt.Fprintf(s.Stdout, "  - %s\n", p)
	}
	for _, end := range s.record.RunnerEnds {
		fmt.Fprintf(s.Stdout, "  - %s\n", end.Text)
	}
	if result.Runner.State != shard.Finished || s.incomplete() {
		outcome = verdict.Invalid
	}
	fmt.Fprintf(s.Stdout, "\npart %d of %d is %s", s.runnerNumber, s.Plan.Runners, result.Runner.State)
	if s.Suite.Target.Streams {
		missed := fmt.Sprintf("%d missed, ", sum.Missed())
		if s.Plan.Published() {
			missed = "" // only the merge knows which messages the service confirmed
		}
		fmt.Fprintf(s.Stdout, ": %s connected, %d refused, %d dropped; %s received, %s%d faulty, %d late",
			format.Plural(sum.Opened, "client", "clients"), sum.Refused, sum.Dropped, s.receivedMessages(sum.Received), missed, sum.Faults(), sum.Late)
		if withoutMessage > 0 {
			fmt.Fprintf(s.Stdout, "; %s received no message", format.Plural(withoutMessage, "client", "clients"))
		}
	}
	if p := result.Published; p != nil {
		sums := p.Sums()
		fmt.Fprintf(s.Stdout, "; published %d of %d, %d confirmed", sums.Sent, p.Planned, sums.Confirmed)
	}
	if len(result.Feeds) > 0 {
		fmt.Fprint(s.Stdout, "; \"soak merge\" compares the clients of this part with each other and with the clients of the other parts")
	}
	fmt.Fprintln(s.Stdout)
	return outcome
}
