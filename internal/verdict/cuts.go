package verdict

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Cuts counts the disconnects of one kind that the run made on purpose, and their results (docs/suites.md).
type Cuts struct {
	Kind    string `json:"kind"`
	Planned int    `json:"planned"`
	Count   int    `json:"count"`
	// Ended is the number of cuts that ended the stream: all except pauses during which the service kept it open.
	Ended int `json:"ended"`
	// Resumed is the number of ended streams that were reopened and received a message. If the service resumes streams,
	// the client must have requested to resume.
	Resumed int `json:"resumed"`
	// WithoutLoss is the number of cuts after which a message arrived, but without a fault: no message was lost or
	// duplicated, no gap was announced, and the numbers did not restart.
	WithoutLoss int    `json:"without_loss"`
	Lost        uint64 `json:"lost"` // messages, including messages in gaps that the service announced
	Duplicated  uint64 `json:"duplicated"`
	Repeated    uint64 `json:"repeated,omitempty"` // duplicates, if the description allows them
	Announced   uint64 `json:"announced"`          // announcements of the service that messages are missing
	// OutageMS is the time from the cut to the first message after it.
	OutageMS Quantiles `json:"outage_ms"`

	outages *shard.Histogram
}

// A cutAccount sums up the cuts of the run.
type cutAccount struct {
	lost    map[int][]cutLoss // by client: the messages that were lost at each of its cuts
	allowed uint64            // lost messages of all cuts that ALLOW_ANNOUNCED_GAPS allows

	untestedTexts []string // sentences about cuts without an observed resume
	brokenTexts   []string // sentences about cuts with a loss, a duplicate, an announced gap or numbers that restarted
}

// A cutLoss counts the messages that a client lost at one cut. allowed is the part that ALLOW_ANNOUNCED_GAPS allows.
type cutLoss struct{ all, allowed uint64 }

func (c *Counts) allCuts() (all Cuts) {
	for _, c := range c.Cuts {
		all.Planned += c.Planned
		all.Count += c.Count
		all.Ended += c.Ended
		all.Resumed += c.Resumed
		all.Lost += c.Lost
		all.Duplicated += c.Duplicated
		all.Repeated += c.Repeated
		all.Announced += c.Announced
	}
	return all
}

// attributeToCuts counts the lost messages of a client by the cut at which they were lost. It returns the messages
// that count as missed: all, except messages in announced gaps if the plan allows such gaps.
func (s *Streams) attributeToCuts(i int, a *account, lost []ledger.Range) (missed []ledger.Range) {
	if a.r.Cuts == nil {
		return lost
	}
	cuts := a.r.Cuts.List
	losses := make([]cutLoss, len(cuts))
	for _, numbers := range lost {
		for n := numbers[0]; n <= numbers[1]; n++ {
			k := a.cutOf(n)
			if k >= 0 {
				losses[k].all++
			}
			if k >= 0 && cuts[k].Announced > 0 && s.m.Plan.AllowGaps && (!a.ordered || cuts[k].GapEnd == 0 || n < cuts[k].GapEnd) {
				losses[k].allowed++
				s.cuts.allowed++
				continue
			}
			missed = ledger.AppendNumber(missed, n)
		}
	}
	if s.cuts.lost == nil {
		s.cuts.lost = map[int][]cutLoss{}
	}
	s.cuts.lost[i] = losses
	return missed
}

// cutOf returns the index of the cut at which a message was lost, or -1. The candidate is the last cut at which the
// client had received only lower numbers. One of these must hold:
//   - the client did not reconnect;
//   - the number is below the first one after the cut;
//   - the message was sent before the reconnect, or within the stream margin after it.
func (a *account) cutOf(number uint64) int {
	for k, c := range slices.Backward(a.r.Cuts.List) {
		if number <= c.LastNumber {
			continue
		}
		if c.ReconnectedAt == 0 || number < c.Next || a.messages[number-1].SentUS <= a.startedUS+(c.ReconnectedAt+a.margin).Microseconds() {
			return k
		}
		return -1
	}
	return -1
}

func (s *Streams) addCuts() {
	if !s.m.Plan.HasCuts() {
		return
	}
	kinds := map[string]*Cuts{}
	for _, kind := range plan.CutKinds() {
		kinds[kind] = &Cuts{Kind: kind, outages: shard.NewHistogram()}
	}
	for _, c := range s.m.Plan.PlannedCuts() {
		kinds[c.Kind].Planned++
	}
	for i, r := range s.Records() {
		if r.Cuts == nil {
			continue
		}
		for k := range r.Cuts.List {
			if sum := kinds[r.Cuts.List[k].Kind]; sum != nil {
				s.addCut(sum, r, k, s.lossAtCut(i, r, k))
			}
		}
		if r.Cuts.Unlisted > 0 {
			s.cuts.untestedTexts = append(s.cuts.untestedTexts, fmt.Sprintf("%s was disconnected so often that the effect of %s is unknown", r.ID, format.Plural(r.Cuts.Unlisted, "disconnect", "disconnects")))
		}
	}
	for _, kind := range plan.CutKinds() {
		if sum := kinds[kind]; sum.Planned+sum.Count > 0 {
			sum.OutageMS = quantiles(sum.outages)
			s.Cuts = append(s.Cuts, *sum)
		}
	}
}

// A JudgedCut is a cut with the number of messages that were lost at it.
type JudgedCut struct {
	ledger.Cut
	Missed uint64
}

// AllCuts yields the cuts of the run, each with its client. A verdict that was read from a file has none.
func (v *Verdict) AllCuts() iter.Seq2[*shard.Connection, JudgedCut] {
	return func(yield func(*shard.Connection, JudgedCut) bool) {
		for i, r := range v.Records() {
			if r.Cuts == nil {
				continue
			}
			for k, c := range r.Cuts.List {
				if !yield(r, JudgedCut{c, v.streams.lossAtCut(i, r, k).all}) {
					return
				}
			}
		}
	}
}

// lossAtCut returns the messages that a client lost at one of its cuts. Without a publisher and without other clients to
// compare with, these are the numbers that were skipped at the cut and did not arrive later. There are none if the
// service does not keep the order.
func (s *Streams) lossAtCut(i int, r *shard.Connection, k int) cutLoss {
	if losses, ok := s.cuts.lost[i]; ok {
		return losses[k]
	}
	c := &r.Cuts.List[k]
	if s.m.Service.AnyOrder || c.LastNumber == 0 || c.Next <= c.LastNumber+1 {
		return cutLoss{}
	}
	skipped := c.Next - c.LastNumber - 1
	return cutLoss{all: skipped - min(c.Filled, skipped)}
}

func (s *Streams) addCut(sum *Cuts, r *shard.Connection, k int, lost cutLoss) {
	c := &r.Cuts.List[k]
	sum.Count++
	sum.Lost += lost.all
	sum.Duplicated += c.Duplicated
	sum.Repeated += c.Repeated
	sum.Announced += c.Announced
	if outage, ok := c.Interruption(); ok {
		sum.outages.Record(outage)
	}
	if c.Lost {
		sum.Ended++
	}
	if reason := s.untestedReason(r, c); reason != "" {
		s.cuts.untestedTexts = append(s.cuts.untestedTexts, s.cutSentence(r, c)+reason)
		return
	}
	if c.Lost {
		sum.Resumed++
	}
	// If the numbers go back although no message was repeated, the service restarted its numbering.
	restarts := s.m.Service.Resumes() && !s.m.Service.AnyOrder && c.LastNumber > 0 && c.Next <= c.LastNumber && c.Duplicated+c.Repeated == 0
	switch {
	case lost.all+c.Duplicated+c.Announced == 0 && !restarts:
		sum.WithoutLoss++
	case c.Announced > 0 && s.m.Plan.AllowGaps && lost.all == lost.allowed && c.Duplicated == 0 && !restarts:
	default:
		s.cuts.brokenTexts = append(s.cuts.brokenTexts, s.cutSentence(r, c)+s.lossText(c, lost.all-lost.allowed))
	}
}

// untestedReason returns why a cut did not test a resume; "" if it did.
func (s *Streams) untestedReason(r *shard.Connection, c *ledger.Cut) string {
	switch {
	case c.ReconnectedAt == 0:
		return "the client did not reconnect"
	case c.Lost && !r.Numbered && s.m.Service.Resumes():
		return fmt.Sprintf("its %ss had no ids 1, 2, 3 …, so it is unknown whether it resumed", s.m.Service.Noun())
	case c.Lost && !c.ResumeRequested && s.m.Service.Resumes():
		return "there was no id from which the client could resume"
	case c.NextAt == 0:
		return "no message arrived afterward"
	}
	return ""
}

func (s *Streams) lossText(c *ledger.Cut, lost uint64) string {
	text := fmt.Sprintf("%s lost, %d received twice", format.Plural(lost, s.m.Service.Noun()+" was", s.m.Service.Noun()+"s were"), c.Duplicated)
	if c.Announced > 0 {
		text += ", and the service announced a gap"
		if gap := s.m.Service.Gap; gap != "" {
			text += " by " + gap
		}
	} else if c.Next > 0 && c.Next <= c.LastNumber {
		text += fmt.Sprintf(", and the stream continued with %d", c.Next)
	}
	return text
}

func (s *Streams) cutSentence(r *shard.Connection, c *ledger.Cut) string {
	after := ""
	if c.LastNumber > 0 {
		after = fmt.Sprintf(" after %s %d", s.m.Service.Noun(), c.LastNumber)
	}
	return fmt.Sprintf("%s was disconnected at %s (%s)%s: ", r.ID, format.TimeOfDay(s.m.Runners[r.Runner].At(c.At)), c.Kind, after)
}

// CutChecks returns the checks of the cuts: all planned cuts were made, each stream resumed, and no message was lost or
// duplicated. It returns nil if the plan has no cuts.
func (s *Streams) CutChecks() []Check {
	if !s.m.Plan.HasCuts() {
		return nil
	}
	all := s.allCuts()
	var missing []string
	for _, c := range s.Cuts {
		if c.Count < c.Planned {
			missing = append(missing, fmt.Sprintf("%d of %s of kind %s %s made: too few streams were open and had received a message since their previous disconnect",
				c.Count, format.Plural(c.Planned, "disconnect", "disconnects"), c.Kind, format.Form(c.Planned, "was", "were")))
		}
	}
	if all.Planned == 0 {
		missing = append(missing, "no disconnect was planned")
	}
	resumeCheck := Check{
		ID: CheckResumed, Name: "streams resumed after a disconnect", Limit: fmt.Sprint(all.Ended), Actual: fmt.Sprint(all.Resumed),
		Pass: len(s.cuts.untestedTexts) == 0, Why: "resume was not tested", Reasons: s.cuts.untestedTexts,
	}
	lossCheck := Check{
		ID: CheckCutLoss, Name: "disconnects with lost or repeated messages", Limit: "0", Actual: fmt.Sprint(len(s.cuts.brokenTexts)),
		Pass: len(s.cuts.brokenTexts) == 0, Why: "clients lose or repeat data when they resume",
	}
	if !lossCheck.Pass {
		lossCheck.Reasons = append([]string{s.brokenCutsText(&all)}, s.cuts.brokenTexts...)
	}
	countCheck := Check{
		ID: CheckCuts, Name: "streams disconnected as planned", Limit: fmt.Sprint(all.Planned), Actual: fmt.Sprint(all.Count), Pass: len(missing) == 0,
		Why: "resume was not tested", Reasons: missing,
	}
	const reason = "no stream was disconnected"
	return []Check{countCheck.AsDoubt(), resumeCheck.AsDoubt().notJudgedIf(all.Count == 0, reason), lossCheck.notJudgedIf(all.Count == 0, reason)}
}

func (s *Streams) brokenCutsText(all *Cuts) string {
	text := fmt.Sprintf("%d of %s led to faults: %s lost, %d received twice", len(s.cuts.brokenTexts), format.Plural(all.Count, "disconnect", "disconnects"),
		format.Plural(all.Lost-min(s.cuts.allowed, all.Lost), s.m.Service.Noun()+" was", s.m.Service.Noun()+"s were"), all.Duplicated)
	if n := all.Announced; n > 0 {
		text += fmt.Sprintf("; the service announced %s by %s", format.Plural(n, "gap", "gaps"), cmp.Or(s.m.Service.Gap, "resume.gap"))
	}
	return text
}

// CutTable returns a table of the cuts by kind.
func (s *Streams) CutTable() Table {
	t := Table{
		Title: "Resumes by kind of disconnect",
		Note: "ended: the stream ended (a pause ends one only if the service closes it meanwhile); complete: no message was lost, duplicated " +
			"or announced as missing; p50, p99, max: seconds from the disconnect to the next message",
		Columns: []string{"kind", "made", "ended", "resumed", "complete", "lost", "duplicated", "announced", "p50", "p99", "max"},
	}
	for _, c := range s.Cuts {
		seconds := func(ms float64) string {
			if c.OutageMS == (Quantiles{}) {
				return "–" // no message arrived after a cut of this kind
			}
			return fmt.Sprintf("%.3g", ms/1000)
		}
		t.Add(c.Kind, format.Thousands(c.Count), format.Thousands(c.Ended), format.Thousands(c.Resumed), format.Thousands(c.WithoutLoss),
			format.Thousands(c.Lost), format.Thousands(c.Duplicated), format.Thousands(c.Announced), seconds(c.OutageMS.P50), seconds(c.OutageMS.P99), seconds(c.OutageMS.Max))
	}
	return t
}

// cutSummary returns the sentence about cuts for the summary of a pass; "" without cuts.
func (s *Streams) cutSummary() string {
	all := s.allCuts()
	if all.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("%s disconnected, %d", format.Plural(all.Count, "stream was", "streams were"), all.Resumed)
	if all.Ended < all.Count { // the service kept the streams of clients that paused
		text = fmt.Sprintf("%s disconnected or paused, %d ended and", format.Plural(all.Count, "stream was", "streams were"), all.Ended)
	}
	if !s.m.Service.Resumes() {
		return text + " reopened; the service does not resume (resume.by), so messages published meanwhile were not expected"
	}
	text += " resumed with " + cmp.Or(s.m.Service.Resume, "Last-Event-ID")
	if s.cuts.allowed > 0 {
		return text + fmt.Sprintf("; %s missing in announced gaps, which ALLOW_ANNOUNCED_GAPS=1 allows",
			format.Plural(s.cuts.allowed, s.m.Service.Noun()+" is", s.m.Service.Noun()+"s are"))
	}
	text += ", and no message was lost or duplicated"
	if all.Repeated > 0 {
		text += fmt.Sprintf("; %s received twice, which the description allows", format.Plural(all.Repeated, s.m.Service.Noun()+" was", s.m.Service.Noun()+"s were"))
	}
	return text
}
