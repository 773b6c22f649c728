package shard

import (
	"errors"
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Bounds that no runner exceeds. A shard may come from another machine, and its file may be damaged or hostile.
// Within these bounds memory and time stay limited, and no sum overflows.
const (
	maxUnpacked = 1 << 30   // bytes of JSON
	packedBase  = 64 << 20  // and no more than this
	packedTimes = 400       // and times the size of the file: those of runners pack to a tenth, of the most monotonous to a 75th
	maxValue    = 8 << 20   // bytes of JSON of one value
	maxRecord   = 1 << 20   // bytes of JSON of one connection: a ledger lists at most 1000 spans and 1000 cuts
	maxRecords  = 256 << 20 // bytes of all connections, packed
	emptyRecord = 16        // bytes of a packed record without content; apart from these, packing makes no record longer
	maxKeys     = 100       // of the object

	maxConnections = 1 << 20 // the maximum number of descriptors of a Linux process
	maxBuckets     = 1 << 19 // 30 days
	maxSeconds     = 1 << 20
	maxMetrics     = 6144 // a runner keeps 5001; a histogram costs 26 KB
	maxChecks      = 1 << 10

	maxFindings = 1 << 22 // and outages, of all connections
	maxKinds    = 100
	maxText     = 4096    // bytes
	maxNumber   = 1 << 48 // messages, durations in microseconds
	maxNoops    = 1 << 37 // of a connection: the sum of all counts of all connections stays below 1 << 64
	maxLength   = 400 * 24 * time.Hour
)

// check refuses values beyond the bounds, so that later steps need not check.
func (s *Shard) check() error {
	if s.Connect == nil || s.FirstNoop == nil || s.Lateness == nil {
		return errors.New("it lacks a histogram")
	}
	if s.Latency != nil && s.Latency.Histogram == nil {
		return errors.New("it lacks the latency's histogram")
	}
	for _, check := range []func() error{
		s.checkRunner, s.checkTimes, s.checkSums, s.checkFeeds, s.checkConnections, s.checkPublished, s.checkControl, s.checkCodings, s.checkBursts, s.checkRedirects,
		s.checkShared, s.checkEnds, s.checkResponses, s.Machine.Check,
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
		return fmt.Errorf("its runner has index %d, they count from 1", r.Index)
	case r.Index > plan.MaxConnections || s.Plan.Runners > plan.MaxConnections:
		return fmt.Errorf("its runner has index %d of %d, which no plan has", r.Index, s.Plan.Runners)
	case s.Plan.Connections < 0 || s.Plan.Connections > plan.MaxConnections:
		return fmt.Errorf("its plan has %d connections, which no plan has", s.Plan.Connections)
	case r.EndedUS < r.StartedUS || r.EndedUS-r.StartedUS > maxLength.Microseconds() || r.StartedUS < 0 || r.EndedUS > maxNumber*64:
		return fmt.Errorf("its runner started at %d µs and ended at %d µs, which cannot be", r.StartedUS, r.EndedUS)
	}
	for _, text := range []string{
		r.TestID, r.RunID, r.Process, r.Segment, r.Script, r.ScriptHash, r.K6Version, r.Host, string(r.State), s.Plan.Prefix, s.Plan.TestID, s.Plan.BackendURL, s.Plan.ControlURL,
	} {
		if len(text) > maxText {
			return tooLong(text)
		}
	}
	return nil
}

func tooLong(text string) error {
	return fmt.Errorf("it holds a text of %d characters, %.20q…", len(text), text)
}

// slack is the time that a bucket may exceed the run at either end.
const slack = 2 * BucketWidth

// checkTimes refuses times outside of the run, which would stretch the time axis of the report.
func (s *Shard) checkTimes() error {
	from, to := s.Runner.Started().Add(-slack), time.UnixMicro(s.Runner.EndedUS).Add(slack)
	for _, b := range s.Series {
		if b.Unix < from.Unix() || b.Unix > to.Unix() {
			return fmt.Errorf("its series tells of %s, but its runner ran from %s to %s",
				format.Time(time.Unix(b.Unix, 0)), format.Time(s.Runner.Started()), format.Time(time.UnixMicro(s.Runner.EndedUS)))
		}
	}
	if m := s.Machine; m != nil && len(m.Counters) > 0 && (m.FromUS < from.UnixMicro() || m.ToUS > to.UnixMicro()) {
		return fmt.Errorf("its machine was watched from %d µs to %d µs, but its runner ran from %d µs to %d µs", m.FromUS, m.ToUS, s.Runner.StartedUS, s.Runner.EndedUS)
	}
	for _, b := range s.Seconds {
		if b.FromUS < from.UnixMicro() || b.ToUS > to.UnixMicro() || b.ToUS < b.FromUS {
			return fmt.Errorf("it tells of the time from %d µs to %d µs, but its runner ran from %d µs to %d µs", b.FromUS, b.ToUS, s.Runner.StartedUS, s.Runner.EndedUS)
		}
	}
	return nil
}

func (s *Shard) checkSums() error {
	for _, c := range s.Checks {
		if len(c.Name) > maxText {
			return tooLong(c.Name)
		}
		if c.Passes < 0 || c.Fails < 0 || c.Passes > maxNumber || c.Fails > maxNumber {
			return fmt.Errorf("it holds a check that passed %d times and failed %d times", c.Passes, c.Fails)
		}
	}
	for _, m := range s.Metrics {
		if len(m.Name) > maxText || len(m.Type) > maxText {
			return tooLong(m.Name + m.Type)
		}
		if m.Count < 0 || m.Count > maxNumber {
			return fmt.Errorf("it holds a metric with a count of %d", m.Count)
		}
		if m.Name == RequestDuration && (m.Trend == nil || m.Own == nil) {
			return fmt.Errorf("it holds a metric %s without its times", m.Name)
		}
		for name, value := range m.Tags {
			if len(name)+len(value) > maxText || len(m.Tags) > maxKinds {
				return tooLong(name + value)
			}
		}
	}
	return nil
}

func (s *Shard) checkConnections() error {
	kinds := map[ledger.Kind]bool{}
	for c := range s.Records() {
		if c.ID == "" {
			return errors.New("it holds a connection without id")
		}
		if len(c.ID)+len(c.State)+len(c.Reason) > maxText {
			return tooLong(c.ID + string(c.State) + c.Reason)
		}
		if max(c.Max(), c.Last-min(c.First, c.Last)) > maxNoops || c.Streams < 0 || c.Streams > maxNumber || c.Attempts < 0 || c.Attempts > maxNumber || c.Unlisted < 0 {
			return fmt.Errorf("it holds a connection (%s) with a count that cannot be", c.ID)
		}
		if err := s.checkNumbers(c); err != nil {
			return err
		}
		for _, f := range c.Findings {
			if kinds[f.Kind] = true; len(f.Kind) > maxText || len(kinds) > maxKinds {
				return fmt.Errorf("it holds too many kinds of findings, or one of a long name, %.20q", f.Kind)
			}
			if len(f.Note) > maxText {
				return tooLong(f.Note)
			}
		}
	}
	return nil
}

// checkNumbers refuses a connection with numbered messages whose numbers, counts and spans contradict each other: the expected
// messages follow from these.
func (s *Shard) checkNumbers(c *ledger.Record) error {
	if s.Service.Counts != CountsNumbers && s.Service.Counts != CountsShared {
		return nil
	}
	if uint64(len(c.Spans))+c.UnlistedSpans != clamp.Uint64(c.Streams) {
		return fmt.Errorf("it holds a connection (%s) with %d streams, and the spans of %d", c.ID, c.Streams, uint64(len(c.Spans))+c.UnlistedSpans)
	}
	if s.Service.Counts == CountsShared {
		return s.checkFeed(c)
	}
	if !s.Plan.Published() {
		return nil
	}
	came := uint64(0)
	if c.Last > 0 {
		came = c.Last - min(c.First, c.Last) + 1
	}
	for _, hole := range c.Holes {
		if hole[0] <= c.First || hole[1] >= c.Last || hole[0] > hole[1] {
			return fmt.Errorf("it holds a connection (%s) with a hole from %d to %d in the numbers from %d to %d", c.ID, hole[0], hole[1], c.First, c.Last)
		}
		came -= min(hole[1]-hole[0]+1, came)
	}
	if came -= min(c.Lost, came); came+c.Unplaced != c.Received+c.Corrupted || c.Unplaced > c.Corrupted || uint64(len(c.UnplacedAt)) > c.Unplaced {
		return fmt.Errorf("it holds a connection (%s) on which %d messages came, and %d by their numbers", c.ID, c.Received+c.Corrupted, came+c.Unplaced)
	}
	return nil
}

// checkPublished refuses a publisher that did not work during the run.
func (s *Shard) checkPublished() error {
	p, r := s.Published, s.Runner
	if p == nil {
		return nil
	}
	if p.StartedUS < r.StartedUS-slack.Microseconds() || p.StartedUS > r.EndedUS+slack.Microseconds() {
		return fmt.Errorf("it was published from %d µs on, but its runner ran from %d µs to %d µs", p.StartedUS, r.StartedUS, r.EndedUS)
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("published messages: %w", err)
	}
	return nil
}
