package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A WatchedTime is the client time that was observed in a run with a runner that ended early: the sum over the clients.
// For a client that endedEarly reports, the time starts with the first stream. It ends with the last stream or the last
// known message, whichever is later. For any other client it lasts as long as the runner, at most for the planned time.
// No message is expected in the rest of the time.
type WatchedTime struct {
	Planned float64 `json:"planned"` // seconds
	Watched float64 `json:"watched"` // seconds
	Share   float64 `json:"share"`
}

// String describes the share, rounded down: "97.4 % of 28,800 client-hours were watched".
func (w *WatchedTime) String() string {
	unit, planned := "client-hours", w.Planned/3600
	if planned < 10 {
		unit, planned = "client-seconds", w.Planned
	}
	return fmt.Sprintf("%g %% of %s %s were watched", math.Floor(w.Share*1000)/10, format.Thousands(int64(math.Round(planned))), unit)
}

// endedEarly reports whether a client was open, connecting or reconnecting when its runner ended early. Two faults are
// exceptions: an outage that was already longer than Plan.MaxLastOutage, and a refusal before the first stream.
func (s *Streams) endedEarly(r *shard.Connection) bool {
	runner := &s.m.Runners[r.Runner]
	if !runner.EndedEarly() {
		return false
	}
	if r.State == ledger.Waiting {
		limit := s.m.Plan.MaxLastOutage()
		return time.Duration(runner.EndedUS-runner.StartedUS)*time.Microsecond-r.ClosedAt <= limit
	}
	return endOf(r) == endStop && !(r.State == ledger.Connecting && len(r.Refusals) > 0)
}

// watchedOf returns the time for which the runner of a record watched its client. endedEarly is s.endedEarly(r).
func (s *Streams) watchedOf(r *shard.Connection, endedEarly bool) time.Duration {
	runner, hold := &s.m.Runners[r.Runner], s.m.Plan.Hold()
	switch {
	case endedEarly && r.Streams == 0:
		return 0
	case endedEarly:
		return min(max(r.LastAt, r.ClosedAt)-r.OpenedAt, hold)
	case runner.EndedEarly(): // the stream had ended before the runner did
		return min(time.Duration(runner.EndedUS-runner.StartedUS)*time.Microsecond, hold)
	}
	return max(hold-runner.StartDelay(), 0)
}

// sumWatched returns the client time that was watched; nil if all runners ran to their end.
func (s *Streams) sumWatched() *WatchedTime {
	if len(s.m.EarlyEnds) == 0 {
		return nil
	}
	planned := s.m.Plan.Hold().Seconds() * float64(s.m.Plan.Connections)
	w := &WatchedTime{Planned: planned, Watched: min(s.watchedTime.Seconds(), planned)}
	w.Share = w.Watched / max(planned, 1)
	return w
}

// runnerEnds describes the runners that ended early, the causes of other incomplete data, and the missing data.
func (e *Evidence) runnerEnds() (early, causes, problems []string) {
	m := e.Rounds[0]
	for _, end := range e.RunnerEnds {
		at := slices.IndexFunc(m.Runners, func(r shard.Runner) bool { return r.Index == end.Runner })
		if at >= 0 && m.Runners[at].EndedEarly() {
			early = append(early, end.Text)
		} else {
			causes = append(causes, end.Text)
		}
	}
	return append(early, m.EarlyEnds...), causes, slices.Concat(m.Problems, e.Problems)
}

// completenessCheck returns the check that all planned runners and clients were observed, and warnings. Runners that
// ended early are allowed if the watched share of the client time is at least MIN_COVERAGE. The share is known only in
// suites whose clients are connected for the whole run.
func completenessCheck(e *Evidence, a *Assessment) (c Check, warnings []string) {
	c = Check{
		ID: CheckComplete, Name: "data complete", Limit: "every runner and client", Actual: "complete",
		Severity: SeverityInconclusive, Why: "a run with missing data cannot be judged",
	}
	w, required := a.watchedTime(), e.Rounds[0].Plan.RequiredCoverage()
	early, causes, problems := e.runnerEnds()
	switch {
	case a.Declared:
		c.Limit = "every runner"
	case required < 1:
		c.Limit = fmt.Sprintf("%g %% of the client time", 100*required)
	}
	switch {
	case w != nil && required < 1 && w.Share >= required:
		c.Actual, warnings = w.String(), early
		problems = append(causes, problems...)
	default:
		problems = slices.Concat(causes, early, problems)
		if w != nil && required < 1 {
			problems = append(problems, fmt.Sprintf("%s; the limit is %g %% (MIN_COVERAGE)", w, 100*required))
		}
	}
	c.Actual, c.Pass, c.Reasons = firstText(problems, c.Actual), len(problems) == 0, problems
	return c, warnings
}

// watchedTime returns the watched client time; nil if it is unknown, or if all runners ran to their end.
func (a *Assessment) watchedTime() *WatchedTime {
	if a.Declared || a.Streams == nil {
		return nil
	}
	return a.Streams.Watched
}

func (v *Verdict) addWatchedShare(text string) string {
	switch {
	case v.Watched == nil || v.Verdict == Invalid:
		return text
	case v.Verdict == Pass:
		share := strings.TrimSuffix(v.Watched.String(), " were watched")
		return fmt.Sprintf("no loss in the %s that were watched; %s", share, text)
	}
	return text + "; " + v.Watched.String()
}
