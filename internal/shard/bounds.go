package shard

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Bounds that no runner exceeds. A shard may come from another machine, and its file may be damaged or hostile.
// Within these bounds, memory and time are limited, and no sum overflows.
const (
	maxUnpacked = 1 << 30   // bytes of JSON
	packedBase  = 64 << 20  // bytes of JSON independent of the size of the file
	packedTimes = 400       // bytes of JSON per byte of the file; a typical file has 10, the most compressible one 75
	maxValue    = 8 << 20   // bytes of JSON of one value
	maxReach    = 96 << 20  // bytes of a Reach, and of one topic in base64: two bytes for each of MaxPublished messages
	maxRecord   = 1 << 20   // bytes of JSON of one client: a ledger lists at most 1000 spans and 1000 cuts
	maxRecords  = 256 << 20 // bytes of all packed records
	emptyRecord = 16        // bytes of a packed record without content; no packed record exceeds its JSON by more
	maxFields   = 16 << 20  // bytes of JSON outside of the lists that are read element by element

	maxConnections = 1 << 20 // the default maximum number of descriptors of a Linux process
	maxBuckets     = 1 << 19 // 30 days
	maxSeconds     = 1 << 20 // 12 days
	maxMetrics     = 6144    // a runner keeps 5000, and one more for each k6 metric; a histogram costs 27 KB
	maxChecks      = 1 << 10

	maxFindings = 1 << 22 // findings and outages of all clients
	maxKinds    = 100
	maxText     = 4096    // bytes
	maxNumber   = 1 << 48 // messages, durations in microseconds
	maxOfClient = 1 << 37 // of each count of a client, so that the sum over the clients of a shard is below 1 << 64
	maxLength   = 400 * 24 * time.Hour
)

// check returns an error for missing values and for values beyond the bounds, so that later steps need not check them.
func (s *Shard) check() error {
	if s.Connect == nil || s.FirstMessage == nil || s.Lateness == nil {
		return errors.New("connect, first_noop or lateness is missing")
	}
	if len(s.Points) > MaxPoints {
		return fmt.Errorf("points must have at most %d elements", MaxPoints)
	}
	if s.Latency != nil && s.Latency.Histogram == nil {
		return errors.New("latency.histogram is missing")
	}
	for _, check := range []func() error{
		s.checkRunner, s.checkTimes, s.checkSums, s.checkFeeds, s.checkConnections, s.checkPublished, s.checkControl, s.checkCodings, s.Reach.check, s.Bursts.check, s.checkRedirects,
		s.checkHTTP2, s.checkEnds, s.checkResponses, s.Machine.Check,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shard) checkRunner() error {
	r := s.Runner
	switch {
	case r.Index < 1:
		return fmt.Errorf("index of the runner must be at least 1, got %d", r.Index)
	case r.Index > plan.MaxConnections || s.Plan.Runners > plan.MaxConnections:
		return fmt.Errorf("index and number of runners must be at most %d, got %d of %d", plan.MaxConnections, r.Index, s.Plan.Runners)
	case s.Plan.Connections < 0 || s.Plan.Connections > plan.MaxConnections:
		return fmt.Errorf("connections of the plan must be from 0 to %d, got %d", plan.MaxConnections, s.Plan.Connections)
	case r.EndedUS < r.StartedUS || r.EndedUS-r.StartedUS > maxLength.Microseconds() || r.StartedUS < 0 || r.EndedUS > maxNumber*64:
		return fmt.Errorf("impossible times of the runner: from %d µs to %d µs", r.StartedUS, r.EndedUS)
	case r.ReplacedStartUS != 0 && (r.StartedUS-r.ReplacedStartUS > maxLength.Microseconds() || r.ReplacedStartUS > r.StartedUS+slack.Microseconds()):
		return fmt.Errorf("impossible start of the replaced runner: %d µs, but this runner started at %d µs", r.ReplacedStartUS, r.StartedUS)
	}
	for _, text := range []string{
		r.TestID, r.RunID, r.Process, r.Segment, r.Script, r.ScriptHash, r.K6Version, r.Host, string(r.State), s.Plan.Prefix, s.Plan.TestID, s.Plan.BackendURL, s.Plan.ControlURL,
	} {
		if len(text) > maxText {
			return newTooLongError(text)
		}
	}
	return nil
}

// areCounts reports whether all values are possible counts or durations in microseconds.
func areCounts[T int | int64 | uint64](values ...T) bool {
	return slices.Min(values) >= 0 && slices.Max(values) <= maxNumber
}

func newTooLongError(text string) error {
	return fmt.Errorf("texts must have at most %d bytes, got %d, %.20q…", maxText, len(text), text)
}

// slack is the maximum time by which a bucket, or another time of a shard, may be outside of the run at either end.
const slack = 2 * BucketWidth

// checkTimes returns an error for times outside of the run, which would stretch the time axis of the report.
func (s *Shard) checkTimes() error {
	from, to := s.Runner.Started().Add(-slack), time.UnixMicro(s.Runner.EndedUS).Add(slack)
	for _, b := range slices.Concat(s.Series, s.Points) {
		if b.Unix < from.Unix() || b.Unix > to.Unix() {
			return fmt.Errorf("impossible bucket of the series: %s is outside of the run from %s to %s",
				format.Time(time.Unix(b.Unix, 0)), format.Time(s.Runner.Started()), format.Time(time.UnixMicro(s.Runner.EndedUS)))
		}
	}
	if m := s.Machine; m != nil && len(m.Counters) > 0 && (m.FromUS < from.UnixMicro() || m.ToUS > to.UnixMicro()) {
		return fmt.Errorf("impossible times of the machine: %d µs to %d µs is outside of the run from %d µs to %d µs", m.FromUS, m.ToUS, s.Runner.StartedUS, s.Runner.EndedUS)
	}
	isOutside := func(us int64) bool { return us < from.UnixMicro() || us > to.UnixMicro() }
	for _, n := range s.Metrics {
		// A custom trend may have any values, so its FirstUS may be any time.
		hasStart := n.Trend == nil || n.Name == RequestDuration
		if n.LastUS != 0 && isOutside(n.LastUS) || hasStart && n.FirstUS != 0 && isOutside(n.FirstUS) {
			return fmt.Errorf("impossible times of metric %.40q: %d µs to %d µs is outside of the run from %d µs to %d µs", n.Name, n.FirstUS, n.LastUS, s.Runner.StartedUS, s.Runner.EndedUS)
		}
	}
	for _, b := range s.Seconds {
		if b.FromUS < from.UnixMicro() || b.ToUS > to.UnixMicro() || b.ToUS < b.FromUS {
			return fmt.Errorf("impossible second: %d µs to %d µs in a run from %d µs to %d µs", b.FromUS, b.ToUS, s.Runner.StartedUS, s.Runner.EndedUS)
		}
	}
	return nil
}

func (s *Shard) checkSums() error {
	for _, c := range s.Checks {
		if len(c.Name) > maxText {
			return newTooLongError(c.Name)
		}
		if !areCounts(c.Passes, c.Fails) {
			return fmt.Errorf("impossible counts of a check: %d passed, %d failed", c.Passes, c.Fails)
		}
	}
	for _, m := range s.Metrics {
		if len(m.Name) > maxText || len(m.Type) > maxText {
			return newTooLongError(m.Name + m.Type)
		}
		if !areCounts(m.Count) {
			return fmt.Errorf("impossible count of a metric: %d", m.Count)
		}
		if m.Name == RequestDuration && (m.Trend == nil || m.Undelayed == nil) {
			return fmt.Errorf("metric %s must have trend and undelayed", m.Name)
		}
		if len(m.Tags) > maxKinds {
			return fmt.Errorf("metric %.40q must have at most %d tags, got %d", m.Name, maxKinds, len(m.Tags))
		}
		for name, value := range m.Tags {
			if len(name)+len(value) > maxText {
				return newTooLongError(name + value)
			}
		}
	}
	return nil
}

func (s *Shard) checkConnections() error {
	kinds := map[ledger.Kind]bool{}
	for c := range s.Records() {
		if c.ID == "" {
			return errors.New("a client has no id")
		}
		if len(c.ID)+len(c.State)+len(c.Reason) > maxText {
			return newTooLongError(c.ID + string(c.State) + c.Reason)
		}
		isTooWide := s.Plan.Published() && c.Last-min(c.First, c.Last) > maxOfClient // other numbers may be ids of any size
		if isTooWide || c.Max() > maxOfClient || !areCounts(c.Streams, c.Attempts) || c.Unlisted < 0 {
			return fmt.Errorf("impossible count of the client %s", c.ID)
		}
		if s.hasTimeOutsideOfRun(c) {
			return fmt.Errorf("impossible time of the client %s: it is outside of the run", c.ID)
		}
		if err := s.checkNumbers(c); err != nil {
			return err
		}
		for _, f := range c.Findings {
			if kinds[f.Kind] = true; len(f.Kind) > maxText || len(kinds) > maxKinds {
				return fmt.Errorf("findings must have at most %d kinds of at most %d bytes, got %d, %.20q", maxKinds, maxText, len(kinds), f.Kind)
			}
			if len(f.Note) > maxText {
				return newTooLongError(f.Note)
			}
		}
	}
	return nil
}

func (s *Shard) hasTimeOutsideOfRun(c *ledger.Record) bool {
	from, to := -slack, time.Duration(s.Runner.EndedUS-s.Runner.StartedUS)*time.Microsecond+slack
	isOutside := func(times ...ledger.Instant) bool { return slices.Min(times) < from || slices.Max(times) > to }
	areRefusalsOutside := func(list []ledger.Refusal) bool {
		return slices.ContainsFunc(list, func(r ledger.Refusal) bool { return isOutside(r.First, r.Last) })
	}
	isOutageOutside := func(o ledger.Outage) bool { return isOutside(o.From, o.To) || areRefusalsOutside(o.Refusals) }
	return isOutside(c.OpenedAt, c.ClosedAt, c.LastAt, c.SilentFrom) || isOutageOutside(c.Longest) || areRefusalsOutside(c.Refusals) ||
		c.LastOutage != nil && isOutageOutside(*c.LastOutage) || slices.ContainsFunc(c.Outages, isOutageOutside) ||
		len(c.UnplacedAt) > 0 && isOutside(c.UnplacedAt...) ||
		slices.ContainsFunc(c.Findings, func(f ledger.Finding) bool { return isOutside(f.At) }) ||
		slices.ContainsFunc(c.Spans, func(span ledger.Span) bool { return isOutside(span.From, span.To) }) ||
		c.Cuts != nil && slices.ContainsFunc(c.Cuts.List, func(cut ledger.Cut) bool { return isOutside(cut.At, cut.ReconnectedAt, cut.NextAt) })
}

// checkNumbers returns an error if numbers, counts and spans of a client contradict each other.
func (s *Shard) checkNumbers(c *ledger.Record) error {
	if s.Service.CountBasis != CountByNumber && s.Service.CountBasis != CountByComparison {
		return nil
	}
	if uint64(len(c.Spans))+c.UnlistedSpans != clamp.Uint64(c.Streams) {
		return fmt.Errorf("contradictory record of client %s: %s, but %d spans", c.ID, format.Plural(c.Streams, "stream", "streams"), uint64(len(c.Spans))+c.UnlistedSpans)
	}
	if s.Service.CountBasis == CountByComparison {
		return s.checkFeed(c)
	}
	if !s.Plan.Published() {
		return nil
	}
	numbered := uint64(0) // number of messages that arrived, according to First, Last, Holes and Lost
	if c.Last > 0 {
		numbered = c.Last - min(c.First, c.Last) + 1
	}
	for _, hole := range c.Holes {
		if hole[0] <= c.First || hole[1] >= c.Last || hole[0] > hole[1] {
			return fmt.Errorf("contradictory record of client %s: a hole from %d to %d in the numbers from %d to %d", c.ID, hole[0], hole[1], c.First, c.Last)
		}
		numbered -= min(hole[1]-hole[0]+1, numbered)
	}
	if numbered -= min(c.Lost, numbered); numbered+c.Unplaced != c.Received+c.Corrupted {
		return fmt.Errorf("contradictory record of client %s: %s arrived, but numbers and unplaced messages account for %d", c.ID,
			format.Plural(c.Received+c.Corrupted, "message", "messages"), numbered+c.Unplaced)
	}
	if c.Unplaced > c.Corrupted || uint64(len(c.UnplacedAt)) > c.Unplaced {
		return fmt.Errorf("contradictory record of client %s: unplaced messages %d, their times %d, corrupted messages %d",
			c.ID, c.Unplaced, len(c.UnplacedAt), c.Corrupted)
	}
	return nil
}

func (s *Shard) checkPublished() error {
	p, r := s.Published, s.Runner
	if p == nil {
		return nil
	}
	if p.StartedUS < r.StartedUS-slack.Microseconds() || p.StartedUS > r.EndedUS+slack.Microseconds() {
		return fmt.Errorf("impossible start of the publisher: %d µs is outside of the run from %d µs to %d µs", p.StartedUS, r.StartedUS, r.EndedUS)
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("published messages: %w", err)
	}
	return nil
}
