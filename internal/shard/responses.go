package shard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// maxResponseFindings is the maximum number of faulty responses per state that a runner lists.
const maxResponseFindings = 200

// maxAbandoned is the maximum number of abandoned responses that a runner lists.
const maxAbandoned = 20_000

// Responses sums up the finite responses of one or several runners. A finite response ends by itself.
type Responses struct {
	States     map[ledger.ResponseState]int64 `json:"states"`
	Incomplete int64                          `json:"incomplete"` // shortened by the service; each also has a state
	Skipped    int64                          `json:"skipped"`    // requests not made, because too many were in flight
	Good       int64                          `json:"good"`       // complete responses within ResponseLimits
	// RefusedLocally counts responses that were refused because the runner had no port, descriptor or IPv6 address.
	RefusedLocally int64 `json:"refused_locally,omitempty"`
	// Uncovered counts complete responses in which no loss is detectable, and OpenTails complete responses in which a
	// loss of the last chunks is undetectable.
	Uncovered int64 `json:"uncovered"`
	OpenTails int64 `json:"open_tails"`
	Numbered  int64 `json:"numbered"` // responses with chunk numbers in the text
	// FromZero counts responses whose chunks the service numbers from 0, and FromOne responses whose chunks it numbers
	// from 1. Both include only responses whose chunks are counted by these numbers.
	FromZero int64         `json:"from_zero"`
	FromOne  int64         `json:"from_one"`
	Chunks   ledger.Totals `json:"chunks"`

	// Bursts counts the chunks with content of complete responses, and the servers of all responses. SingleBurst counts
	// complete responses of several chunks whose first and last chunk arrived together.
	Bursts      *Bursts `json:"bursts"`
	SingleBurst int64   `json:"single_burst"`

	StartDelay *Histogram `json:"delay"` // intended to actual start, of all requests
	// The following histograms cover only complete responses.
	Headers *Histogram `json:"headers"` // intended start to headers
	First   *Histogram `json:"first"`   // intended start to the first content
	Gap     *Histogram `json:"gap"`     // between two chunks
	Total   *Histogram `json:"total"`   // intended start to the end of the response

	// AbandonedChunks counts the received chunks of abandoned responses. Abandoned lists the first of these responses.
	AbandonedChunks int64               `json:"abandoned_chunks,omitempty"`
	Abandoned       []AbandonedResponse `json:"abandoned,omitempty"`

	Series   []ResponseBucket  `json:"series"`
	Findings []ResponseFinding `json:"findings"`
	Logs     []ResponseLog     `json:"logs,omitempty"` // one for each runner
}

// A ResponseBucket has the sums of a period of BucketWidth: requests by their start, and responses by their end.
type ResponseBucket struct {
	Unix     int64                          `json:"unix_s"`
	Started  int64                          `json:"started"`
	InFlight int64                          `json:"in_flight"` // at the end of the bucket
	States   map[ledger.ResponseState]int64 `json:"states"`
	First    *Packed                        `json:"first,omitempty"` // of complete responses
	Gap      *Packed                        `json:"gap,omitempty"`   // of complete responses
}

// An AbandonedResponse is a response whose client disconnected on purpose.
type AbandonedResponse struct {
	ID     string `json:"id"`         // of the request
	AtUS   int64  `json:"at_unix_us"` // time of the disconnect
	Chunks int64  `json:"chunks"`     // received before the disconnect
}

// A ResponseFinding is a response that is not complete or has wrong chunks. Abandoned responses are not listed.
type ResponseFinding struct {
	ID           string               `json:"id"` // of the request
	State        ledger.ResponseState `json:"state"`
	AtUS         int64                `json:"at_unix_us"` // its end
	Counts       ledger.Totals        `json:"counts"`
	Chunks       int64                `json:"chunks"`            // with content
	TotalChunks  uint64               `json:"of,omitempty"`      // chunks of the complete response; 0: unknown
	FirstMissing *uint64              `json:"missing,omitempty"` // the first missing number
	Reason       string               `json:"reason,omitempty"`
}

// NewResponses returns empty Responses.
func NewResponses() *Responses {
	return &Responses{
		States: map[ledger.ResponseState]int64{}, Bursts: NewBursts(), StartDelay: NewHistogram(), Headers: NewHistogram(), First: NewHistogram(),
		Gap: NewHistogram(), Total: NewHistogram(),
	}
}

// Ended returns the number of requests that were made and have ended, in any state.
func (r *Responses) Ended() (n int64) {
	for _, count := range r.States {
		n += count
	}
	return n
}

// ResponseLimits has the limits of a good response; 0: no limit.
type ResponseLimits struct{ First, Gap, Total time.Duration }

// Add adds a response. endedAt is the wall time of its end.
func (r *Responses) Add(response *ledger.Response, id, reason string, endedAt time.Time, limits ResponseLimits) {
	r.States[response.State]++
	if len(r.Logs) == 0 {
		r.Logs = make([]ResponseLog, 1)
	}
	r.Logs[0].add(response.State, endedAt, response.Ended-response.Due)
	if response.Incomplete {
		r.Incomplete++
	}
	if response.Started > 0 {
		r.StartDelay.Record(response.Started - response.Due)
	}
	counts := response.Totals()
	r.addChunks(&counts)
	if response.IsNumbered() {
		r.Numbered++
	}
	number, lost := response.Missing()
	lost = lost && counts.Missed > 0
	if first, ok := response.FirstNumber(); ok && first == 0 {
		r.FromZero++
	} else if ok {
		r.FromOne++
		if r.FromZero > 0 { // number 0 is missing; verdict.Chunks adds it to the sum
			number, lost = 0, true
			counts.Missed++
			counts.Expected++
		}
	}
	faulty := counts.Missed+counts.Duplicated+counts.Reordered+counts.Corrupted > 0
	switch response.State {
	case ledger.ResponseComplete:
		r.addComplete(response, limits)
	case ledger.ResponseAbandoned:
		r.AbandonedChunks += int64(response.Chunks)
		if len(r.Abandoned) < maxAbandoned {
			r.Abandoned = append(r.Abandoned, AbandonedResponse{ID: id, AtUS: endedAt.UnixMicro(), Chunks: int64(response.Chunks)})
		}
	}
	if response.State != ledger.ResponseAbandoned && (faulty || response.State != ledger.ResponseComplete) {
		f := ResponseFinding{
			ID: id, State: response.State, AtUS: endedAt.UnixMicro(), Counts: counts,
			Chunks: int64(response.Chunks), TotalChunks: response.TotalChunks(), Reason: reason,
		}
		if lost {
			f.FirstMissing = &number
		}
		r.addFinding(f)
	}
}

func (r *Responses) addFinding(f ResponseFinding) {
	listed := 0
	for i := range r.Findings {
		if r.Findings[i].State == f.State {
			listed++
		}
	}
	if listed < maxResponseFindings {
		r.Findings = append(r.Findings, f)
	}
}

func (r *Responses) addChunks(c *ledger.Totals) {
	r.Chunks.Received += c.Received
	r.Chunks.Missed += c.Missed
	r.Chunks.Expected += c.Expected
	r.Chunks.Duplicated += c.Duplicated
	r.Chunks.Reordered += c.Reordered
	r.Chunks.Corrupted += c.Corrupted
}

func (r *Responses) addComplete(response *ledger.Response, limits ResponseLimits) {
	switch response.Coverage() {
	case ledger.CoversNone:
		r.Uncovered++
	case ledger.CoversAllButTail:
		r.OpenTails++
	case ledger.CoversAll:
	}
	first, total, longest := response.First-response.Due, response.Ended-response.Due, time.Duration(0)
	r.Headers.Record(response.Headers - response.Due)
	r.First.Record(first)
	r.Total.Record(total)
	var silence uint32
	r.Bursts.Messages++ // the first chunk
	for _, us := range response.Gaps {
		gap := time.Duration(us) * time.Microsecond
		r.Gap.Record(gap)
		longest = max(longest, gap)
		r.Bursts.Add(gap, &silence)
	}
	if response.Chunks > 1 && response.Last-response.First < ledger.TogetherLimit {
		r.SingleBurst++
	}
	within := func(d, limit time.Duration) bool { return limit == 0 || d <= limit }
	if within(first, limits.First) && within(longest, limits.Gap) && within(total, limits.Total) {
		r.Good++
	}
}

// Merge adds the responses of another runner. It returns an error if a histogram of the series is unreadable.
func (r *Responses) Merge(o *Responses) error {
	for state, n := range o.States {
		r.States[state] += n
	}
	for _, add := range [][2]*int64{
		{&r.Incomplete, &o.Incomplete}, {&r.Skipped, &o.Skipped}, {&r.RefusedLocally, &o.RefusedLocally}, {&r.Good, &o.Good}, {&r.Uncovered, &o.Uncovered}, {&r.OpenTails, &o.OpenTails},
		{&r.Numbered, &o.Numbered}, {&r.FromZero, &o.FromZero}, {&r.FromOne, &o.FromOne},
		{&r.SingleBurst, &o.SingleBurst}, {&r.AbandonedChunks, &o.AbandonedChunks},
	} {
		*add[0] += *add[1]
	}
	r.addChunks(&o.Chunks)
	r.Bursts.Merge(o.Bursts)
	for _, add := range [][2]*Histogram{
		{r.StartDelay, o.StartDelay}, {r.Headers, o.Headers}, {r.First, o.First}, {r.Gap, o.Gap}, {r.Total, o.Total},
	} {
		add[0].Merge(add[1])
	}
	r.Logs = append(r.Logs, o.Logs...)
	r.Abandoned = append(r.Abandoned, o.Abandoned...)
	r.Findings = append(r.Findings, o.Findings...)
	slices.SortStableFunc(r.Findings, func(a, b ResponseFinding) int { return cmp.Compare(a.AtUS, b.AtUS) })
	return r.mergeSeries(o.Series)
}

func (r *Responses) mergeSeries(series []ResponseBucket) error {
	var buffer packedBuffer
	for _, b := range series {
		i, ok := slices.BinarySearchFunc(r.Series, b.Unix, func(have ResponseBucket, unix int64) int { return cmp.Compare(have.Unix, unix) })
		if !ok {
			r.Series = slices.Insert(r.Series, i, ResponseBucket{Unix: b.Unix, States: map[ledger.ResponseState]int64{}})
		}
		sum := &r.Series[i]
		sum.Started += b.Started
		sum.InFlight += b.InFlight
		for state, n := range b.States {
			sum.States[state] += n
		}
		if err := cmp.Or(addPacked(&sum.First, b.First, &buffer), addPacked(&sum.Gap, b.Gap, &buffer)); err != nil {
			return err
		}
	}
	return nil
}

// Copy returns a copy, or nil if r is nil.
func (r *Responses) Copy() *Responses {
	if r == nil {
		return nil
	}
	out := NewResponses()
	_ = out.Merge(r) // only a histogram from a file can be unreadable
	return out
}

func (g *Merger) addResponses(s *Shard) {
	if s.Responses == nil {
		return
	}
	m := &g.m
	if m.Responses == nil {
		m.Responses = NewResponses()
	}
	m.Runners[len(m.Runners)-1].Responses = &Responses{Chunks: s.Responses.Chunks, FromOne: s.Responses.FromOne}
	if err := m.Responses.Merge(s.Responses); err != nil {
		g.readErrors = append(g.readErrors, fmt.Sprintf("unreadable responses of runner %d: %v", s.Runner.Index, err))
	}
}

func (s *Shard) checkResponses() error {
	r := s.Responses
	if r == nil {
		return nil
	}
	invalid := errors.New("impossible responses")
	for _, h := range []*Histogram{r.StartDelay, r.Headers, r.First, r.Gap, r.Total} {
		if h == nil {
			return errors.New("a histogram of responses is missing")
		}
	}
	if r.Bursts == nil || r.Bursts.check() != nil {
		return invalid
	}
	for state, n := range r.States {
		if !slices.Contains(ledger.ResponseStates, state) || !areCounts(n) {
			return invalid
		}
	}
	complete := r.States[ledger.ResponseComplete]
	c := r.Chunks
	if r.First.Count() != complete || r.Total.Count() != complete || r.Good > complete ||
		r.RefusedLocally > r.States[ledger.ResponseRefused] || r.Uncovered+r.OpenTails > complete ||
		!areCounts(r.Good, r.Skipped, r.RefusedLocally, r.Uncovered, r.OpenTails, r.Incomplete, r.Numbered, r.FromZero, r.FromOne) ||
		!areCounts(r.SingleBurst, r.AbandonedChunks) ||
		c.Expected > maxNumber || c.Expected != c.Received+c.Missed+c.Corrupted {
		return invalid
	}
	return r.checkLists(s.Runner.Started().Add(-slack), time.UnixMicro(s.Runner.EndedUS).Add(slack))
}

var errOutsideOfRun = errors.New("impossible time of a response: it is outside of the run")

func (r *Responses) checkLists(from, to time.Time) error {
	if len(r.Findings) > maxResponseFindings*len(ledger.ResponseStates) || len(r.Logs) > 1 || len(r.Abandoned) > maxAbandoned {
		return errors.New("too many listed responses or logs")
	}
	for i := range r.Logs {
		if err := r.Logs[i].check(from, to); err != nil {
			return err
		}
	}
	for i, b := range r.Series {
		if i > 0 && b.Unix <= r.Series[i-1].Unix { // mergeSeries would insert each bucket at the front
			return errors.New("buckets of responses must be in ascending order")
		}
		if b.Unix < from.Unix() || b.Unix > to.Unix() {
			return errOutsideOfRun
		}
	}
	for _, a := range r.Abandoned {
		if a.AtUS < from.UnixMicro() || a.AtUS > to.UnixMicro() {
			return errOutsideOfRun
		}
		if len(a.ID) > maxText || !areCounts(a.Chunks) {
			return errors.New("impossible abandoned response")
		}
	}
	for _, f := range r.Findings {
		if f.AtUS < from.UnixMicro() || f.AtUS > to.UnixMicro() {
			return errOutsideOfRun
		}
		if len(f.ID)+len(f.Reason) > maxText {
			return newTooLongError(f.ID + f.Reason)
		}
	}
	return nil
}
