package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/store"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// deliverWithin bounds how long what a machine saw may take to its place.
const deliverWithin = 3 * time.Minute

// parsePart reads --runner K/N; "" is the whole run.
func (s *settings) parsePart() error {
	if s.runner == "" {
		return nil
	}
	index, of, ok := strings.Cut(s.runner, "/")
	k, kErr := strconv.Atoi(index)
	n, nErr := strconv.Atoi(of)
	switch {
	case !ok || kErr != nil || nErr != nil || k < 1 || k > n:
		return fmt.Errorf("--runner is %q: write K/N for the Kth of N runners, such as 1/2", s.runner)
	case s.plan.TestID == "":
		return errors.New("--runner needs --testid: by it the parts of one run know each other")
	case s.plan.BackendURL == "":
		return errors.New("--runner needs BACKEND_URL: the service that all machines soak")
	}
	s.part, s.plan.Runners = k, n
	return nil
}

// here is what this machine carries of the plan.
func (s *settings) here() plan.Plan {
	p := s.plan
	if s.part > 0 {
		p.Connections, p.Runners, p.BackendURL = p.PerRunner(), 1, p.BackendOf(s.part)
	}
	return p
}

// concludePart keeps what this part saw beside its shard, and says what comes next: a verdict
// takes all parts.
func (s *session) concludePart(graceful, force context.Context) (verdict.Outcome, error) {
	s.saveLedger(force, results.LedgerPart(s.part))
	if err := s.dir.WriteJSON(results.RunPart(s.part), s.run); err != nil {
		return "", err
	}
	if err := s.dir.Seal(s.part); err != nil {
		return "", err
	}
	if err := s.deliver(graceful, force); err != nil {
		return "", err
	}
	ctx, cancel := waiting(graceful, force, deliverWithin)
	defer cancel()
	all, err := store.Open(ctx, s.place)
	if err != nil {
		return "", err
	}
	defer all.Close()
	name, own, err := ownShard(ctx, all, s.part, s.plan.RunID)
	if err != nil {
		return "", err
	}
	outcome := s.sayPart(own)
	fmt.Fprintf(s.stdout, "shard   %s\nno verdict yet: when all %d parts are there, `soak merge %s` makes it\n",
		all.At(name), s.plan.Runners, report.Shell(s.mergeFrom()))
	return outcome, nil
}

// ownShard finds the shard of the runner with this index among those of all runs.
func ownShard(ctx context.Context, all store.Store, index int, runID string) (name string, own *shard.Shard, err error) {
	names, err := all.Names(ctx)
	if err != nil {
		return "", nil, err
	}
	for _, name := range names {
		if of, ok := shard.IndexOf(name); !ok || of != index {
			continue
		}
		data, err := all.Get(ctx, name)
		if err != nil {
			return "", nil, fmt.Errorf("the shard of runner %d: %w", index, err)
		}
		if own, err = shard.Read(bytes.NewReader(data)); err != nil {
			return "", nil, fmt.Errorf("the shard of runner %d, %s: %w", index, all.At(name), err)
		}
		if own.Runner.RunID == runID {
			return name, own, nil
		}
	}
	return "", nil, fmt.Errorf("runner %d left no shard in %s", index, all.At(""))
}

// sayPart sums up what this machine saw, and whether that alone is in order.
func (s *session) sayPart(own *shard.Shard) verdict.Outcome {
	var sum shard.Progress
	outcome := verdict.Pass
	for _, r := range own.Connections {
		sum.Count(r)
		if !r.Faultless() {
			outcome = verdict.Fail
		}
	}
	for _, p := range s.run.Problems {
		fmt.Fprintf(s.stdout, "  - %s\n", p)
	}
	if own.Runner.State != shard.Finished || len(s.run.Problems) > 0 {
		outcome = verdict.Invalid
	}
	fmt.Fprintf(s.stdout, "\npart %d of %d is %s: %d streams opened, %d refused, %d dropped; %d noops received, %d missed, %d faulty, %d late\n",
		s.part, s.plan.Runners, own.Runner.State, sum.Opened, sum.Refused, sum.Dropped, sum.Received, sum.Missed(), sum.Faults(), sum.Late)
	return outcome
}

// mergeFrom is the place that `soak merge` is given.
func (s *session) mergeFrom() string {
	if s.Shards == "" {
		return s.dir.Relative()
	}
	return s.place
}

// awaitStart waits until it is time.
func (s *session) awaitStart(ctx context.Context) error {
	wait := time.Until(s.startAt)
	if s.startAt.IsZero() || wait <= 0 {
		return nil
	}
	fmt.Fprintf(s.stdout, "starts at %s UTC, in %s\n", s.startAt.UTC().Format(time.DateTime), wait.Round(time.Second))
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return errors.New("stopped before the start: nothing was run")
	}
}

// parseStart reads --start-at: an instant of RFC 3339, or the next time that a clock in UTC shows
// HH:MM or HH:MM:SS.
func parseStart(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.Before(now) {
			return at, fmt.Errorf("--start-at is %s: that is over since %s", text, now.Sub(at).Round(time.Second))
		}
		return at, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		year, month, day := now.UTC().Date()
		at = at.AddDate(year, int(month)-1, day-1)
		if at.Before(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("--start-at is %q: write HH:MM or HH:MM:SS in UTC, or 2026-01-31T15:04:05Z", text)
}
