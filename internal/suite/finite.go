package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var finite = Suite{
	Name:      "finite",
	Short:     "check responses that end by themselves, such as LLM answers",
	Script:    []string{"load-tests", "sse", "finite.js"},
	Variables: []string{"MODEL", "TOOL"},
	Target:    Target{Kind: Model},
	Page: Page{Doc: "docs/finite.md", Sections: []string{
		"checks", "actions", "responses", "results", "settings", "processes", "machines", "comparison", "data",
	}},
	Assess: assessFinite,
}

func assessFinite(r *Run) verdict.Assessment {
	responses := r.Rounds[0].Responses
	if responses == nil { // no runner left a shard; the merge reports that
		responses = shard.NewResponses()
	}
	f := &finiteRun{Run: r, responses: responses, v: verdict.ResponsesOf(responses, r.Model), chunks: verdict.Chunks(responses)}
	f.gauge = f.requestGauge()
	return verdict.Assessment{
		Responses: responses, Facts: f.facts(), Passed: []string{f.summary()}, Warnings: f.warnings(),
		Checks: f.checks(), Metrics: f.metrics(),
		Tables: append([]verdict.Table{f.stateTable(), f.figureTable(), f.timeTable()}, f.findingTables()...),
	}
}

type finiteRun struct {
	*Run
	responses *shard.Responses
	v         *verdict.Responses
	chunks    ledger.Totals
	gauge     requestGauge
}

func (f *finiteRun) summary() string {
	text := sentence("%v of %v responses complete, %v of %v chunks received", f.v.Complete, f.v.Started, f.chunks.Received, f.chunks.Expected)
	for _, other := range []struct {
		count int64
		state string
	}{
		{f.v.Refused, "refused"}, {f.v.Lingering, verdict.ResponseStates[ledger.ResponseLingering]}, {f.v.Abandoned, "abandoned by the client"},
	} {
		if other.count > 0 {
			text += sentence("; %s %s", format.Count(other.count, "response"), other.state)
		}
	}
	if n := f.responses.Uncovered; n > 0 {
		text += sentence("; chunks of %s have no numbers, so losses of these chunks could not have been detected", format.Count(n, "response"))
	}
	if f.responses.OpenTails > 0 {
		text += "; " + verdict.OpenTailsText(f.responses)
	}
	if n := f.v.Skipped; n > 0 {
		text += sentence("; %s skipped", format.Plural(n, "request was", "requests were"))
	}
	return text
}

func (f *finiteRun) facts() []verdict.Fact {
	facts := []verdict.Fact{
		{Name: "responses", Value: sentence("%v started, %v complete (%s)", f.v.Started, f.v.Complete, percentOf(share(f.v.Complete, f.v.Started)))},
		{Name: "chunks", Value: sentence("%v of %v received, %v missed, %v duplicated, %v reordered, %v corrupted",
			f.chunks.Received, f.chunks.Expected, f.chunks.Missed, f.chunks.Duplicated, f.chunks.Reordered, f.chunks.Corrupted)},
	}
	for _, latency := range []struct {
		name string
		h    *shard.Histogram
		q    verdict.ResponseQuantiles
	}{{"ttft", f.responses.First, f.v.TTFT}, {"inter-chunk", f.responses.Gap, f.v.InterChunkLatency}} {
		if latency.h.Count() > 0 {
			facts = append(facts, verdict.Fact{Name: latency.name, Value: sentence("p50 %s, p99 %s, max %s", ms(latency.q.P50), ms(latency.q.P99), ms(latency.q.Max))})
		}
	}
	if bursts := f.bursts(); bursts != "" {
		facts = append(facts, verdict.Fact{Name: "bursts", Value: bursts})
	}
	if f.hasLimits() {
		facts = append(facts, verdict.Fact{Name: "goodput", Value: sentence("%s of the responses complete and within the limits", ratio(f.v.Good, f.expectedComplete()))})
	}
	if f.v.Incomplete > 0 {
		facts = append(facts, verdict.Fact{Name: "incomplete", Value: sentence("the service reported %s as shortened", format.Count(f.v.Incomplete, "response"))})
	}
	if f.v.Abandoned > 0 {
		facts = append(facts, verdict.Fact{Name: "abandoned", Value: sentence("%s abandoned by the client after %v chunks on average",
			format.Count(f.v.Abandoned, "response"), float64(f.responses.AbandonedChunks)/float64(f.v.Abandoned))})
	}
	if c := f.v.Cancellation; c != nil {
		facts = append(facts, verdict.Fact{Name: "cancelled", Value: f.cancellationText(c)})
	}
	return append(facts, f.gauge.facts()...)
}

func (f *finiteRun) cancellationText(c *verdict.Cancellation) string {
	text := sentence("%v of %v abandoned requests were cancelled at the model", c.Cancelled, c.Checked)
	if c.Cancelled > 0 {
		text += sentence(", after a median of %s and a maximum of %s", ms(c.Delay.P50), ms(c.Delay.Max))
	}
	return text + sentence("; the model sent %s that no client received", format.Count(c.UnreceivedChunks, "chunk"))
}

func (f *finiteRun) bursts() string {
	text := verdict.Bursts(f.responses.Bursts, "chunk")
	if f.v.SingleBurst > 0 {
		text += sentence("; in %s the first chunk arrived together with the last", format.Count(f.v.SingleBurst, "response"))
	}
	return text
}

func (f *finiteRun) warnings() (out []string) {
	cause := verdict.Buffer(f.responses.Bursts)
	if late := f.v.StartDelay.P99; late > maxStartDelayMS {
		cause = sentence("the load generator, which made requests up to %s late, read the chunks late, or ", ms(f.v.StartDelay.Max)) + cause
	}
	if f.gauge.problem != "" {
		out = append(out, f.gauge.problem)
	}
	switch {
	case f.responses.Bursts.Messages <= f.v.Complete: // at most one chunk per response
	case share(f.v.SingleBurst, f.v.Complete) > verdict.MinBufferedShare:
		out = append(out, sentence("in %s of the complete responses the first chunk arrived together with the last: %s", percent(share(f.v.SingleBurst, f.v.Complete)), cause))
	case f.v.ArrivedTogether > verdict.MinBufferedShare:
		out = append(out, sentence("%s of the chunks arrived together with the previous one: %s", percent(f.v.ArrivedTogether), cause))
	}
	return out
}

// faultyResponses returns the number of responses with a state that fails the run. Refused responses fail it only above
// MAX_REFUSED, so they are not included.
func (f *finiteRun) faultyResponses() int64 {
	return f.v.Started - f.v.Complete - f.v.Lingering - f.v.Abandoned - f.v.Refused
}

func (f *finiteRun) expectedComplete() int64 { return f.v.Started - f.v.Abandoned }

func (f *finiteRun) hasLimits() bool {
	return f.number("MAX_TTFT_MS") > 0 || f.number("MAX_GAP_MS") > 0 || f.number("MAX_TOTAL_S") > 0
}

func (f *finiteRun) checks() []verdict.Check {
	zeroCheck := func(id verdict.CheckID, name string, n int64, state ledger.ResponseState) verdict.Check {
		return check(id, name, "0", n, n == 0, f.sentences(state)...)
	}
	v := f.v
	refused := f.checkRefused()
	noneComplete := sentence("no response was complete (%v started)", v.Started)
	if v.Started == 0 {
		noneComplete = "no request was made"
	}
	complete := check(CheckResponsesComplete, "complete responses", "at least 1", v.Complete, v.Complete > 0 || f.faultyResponses() > 0 || !refused.Pass,
		noneComplete)
	if v.Complete == 0 && complete.Pass {
		complete = complete.NotJudged("no response was complete; another check states why")
	}
	skipped := check(CheckResponsesSkipped, "requests skipped", fmt.Sprintf("at most %g %%", 100*maxSkippedShare), ratio(v.Skipped, v.Started+v.Skipped),
		share(v.Skipped, v.Started+v.Skipped) <= maxSkippedShare,
		sentence("%v of %v requests were skipped at the maximum of %s in flight (MAX_IN_FLIGHT): the load was below the plan", v.Skipped, v.Started+v.Skipped, f.parameter("MAX_IN_FLIGHT")))
	out := []verdict.Check{
		invalidateIfUnmet(complete),
		zeroCheck(CheckResponsesTruncated, "responses truncated", v.Truncated, ledger.ResponseTruncated),
		zeroCheck(CheckResponsesError, "responses with an error event", v.ErrorEvent, ledger.ResponseError),
		zeroCheck(CheckResponsesEmpty, "empty responses", v.Empty, ledger.ResponseEmpty),
		zeroCheck(CheckResponsesIdle, "responses silent for too long", v.Idle, ledger.ResponseIdle),
		zeroCheck(CheckResponsesAfterDone, "responses with events after the terminal event", v.AfterDone, ledger.ResponseAfterDone),
		zeroCheck(CheckResponsesUnfinished, "responses unfinished at the end", v.Unfinished, ledger.ResponseUnfinished),
		refused,
		warnIfUnmet(zeroCheck(CheckResponsesLingering, "streams open after the terminal event", v.Lingering, ledger.ResponseLingering)),
		f.chunkCheck(CheckChunksMissed, "chunks missed", f.chunks.Missed, func(c ledger.Totals) uint64 { return c.Missed }),
		f.chunkCheck(CheckChunksDuplicated, "chunks duplicated", f.chunks.Duplicated, func(c ledger.Totals) uint64 { return c.Duplicated }),
		f.chunkCheck(CheckChunksReordered, "chunks reordered", f.chunks.Reordered, func(c ledger.Totals) uint64 { return c.Reordered }),
		f.chunkCheck(CheckChunksCorrupted, "chunks corrupted", f.chunks.Corrupted, func(c ledger.Totals) uint64 { return c.Corrupted }),
		skipped.AsDoubt(),
	}
	if f.hasLimits() {
		onTime := f.checkOnTime()
		isLocal := share(v.Good, f.expectedComplete()-f.responses.RefusedLocally) >= f.share("MIN_GOODPUT")
		out = append(out, attributeIf(!onTime.Pass || isLocal, f.checkGoodput()), onTime)
	}
	return append(out, f.checkNumbers())
}

// checkRefused returns the check of the share of refused responses. If the limit is met without the refusals for lack
// of a local port, descriptor or IPv6 address, an unmet check is attributed to the load generator.
func (f *finiteRun) checkRefused() verdict.Check {
	limit, local, reasons := f.share("MAX_REFUSED"), f.responses.RefusedLocally, f.sentences(ledger.ResponseRefused)
	if local > 0 {
		reasons[0] += sentence(", %v of them because the load generator had %v", local, lackedResources)
	}
	c := check(CheckResponsesRefused, "responses refused", fmt.Sprintf("at most %g %%", f.number("MAX_REFUSED")), ratio(f.v.Refused, f.v.Started),
		share(f.v.Refused, f.v.Started) <= limit, reasons...)
	return attributeIf(share(f.v.Refused-local, f.v.Started) <= limit, c)
}

const maxSkippedShare = .01

func (f *finiteRun) chunkCheck(id verdict.CheckID, name string, n uint64, countOf func(ledger.Totals) uint64) verdict.Check {
	var reasons []string
	if n > 0 {
		reasons = []string{sentence("%v of %v %s", n, format.Count(f.chunks.Expected, "chunk"), name[len("chunks "):])}
	}
	for i := range f.responses.Findings {
		if finding := &f.responses.Findings[i]; countOf(finding.Counts) > 0 {
			reasons = append(reasons, verdict.ResponseSentence(finding))
		}
	}
	c := check(id, name, "0", n, n == 0, reasons...)
	if f.chunks.Expected == 0 && n == 0 {
		return c.NotJudged("no chunk was expected")
	}
	return c
}

func (f *finiteRun) sentences(state ledger.ResponseState) []string {
	n := f.responses.States[state]
	if n == 0 {
		return nil
	}
	out := []string{sentence("%v of %v responses %s", n, f.v.Started, verdict.ResponseStates[state])}
	for i := range f.responses.Findings {
		if finding := &f.responses.Findings[i]; finding.State == state {
			out = append(out, verdict.ResponseSentence(finding))
		}
	}
	return out
}

func (f *finiteRun) checkGoodput() verdict.Check {
	good := share(f.v.Good, f.expectedComplete())
	return check(CheckGoodput, "goodput", fmt.Sprintf("at least %g %%", f.number("MIN_GOODPUT")), distinctPercent(f.share("MIN_GOODPUT"), good, 2), good >= f.share("MIN_GOODPUT"),
		sentence("%v of %v responses were complete and within the limits (ttft p99 %s, inter-chunk p99 %s, e2e p99 %s)",
			f.v.Good, f.expectedComplete(), ms(f.v.TTFT.P99), ms(f.v.InterChunkLatency.P99), ms(f.v.E2E.P99)))
}

// maxStartDelayMS is the maximum p99 of the delay with which the load generator makes requests, in milliseconds.
const maxStartDelayMS = 100

// checkOnTime returns the check that the requests were made on time. If they were late, an unmet check of the goodput
// is attributed to the load generator.
func (f *finiteRun) checkOnTime() verdict.Check {
	late := f.v.StartDelay.P99
	return check(verdict.CheckGenerator, "requests made on time", sentence("p99 at most %s late", ms(maxStartDelayMS)), ms(late), late <= maxStartDelayMS,
		sentence("the load generator made requests up to %s late (p99 %s): its machine was saturated, or connects were slow", ms(f.v.StartDelay.Max), ms(late))).AsDoubt()
}

// checkNumbers returns the check that, if any response has chunk numbers, losses are detectable in all complete
// responses.
func (f *finiteRun) checkNumbers() verdict.Check {
	without := int64(0)
	if f.responses.Numbered > 0 {
		without = f.responses.Uncovered
	}
	return check(CheckNumbered, "complete responses without chunk numbers", "0", without, without == 0,
		sentence("%s no chunk numbers in the text; the text of %s has numbers", format.Plural(without, "complete response has", "complete responses have"), format.Count(f.responses.Numbered, "other")))
}

func (f *finiteRun) stateTable() verdict.Table {
	t := newTable("Responses", "by final state", "state|responses|share")
	for _, state := range ledger.ResponseStates {
		if n := f.responses.States[state]; n > 0 || state == ledger.ResponseComplete {
			t.Add(row(string(state), n, percentOf(share(n, f.v.Started)))...)
		}
	}
	return t
}

func (f *finiteRun) figureTable() verdict.Table {
	t := newTable("Figures, ms", "of complete responses, from the intended start of the request; inter-chunk latency: between two chunks; start delay: from the intended to the actual start, of all requests; chunks are not tokens", "figure|p50|p90|p95|p99|max")
	for _, times := range []struct {
		name string
		h    *shard.Histogram
	}{
		{"time to headers", f.responses.Headers}, {"ttft (first content)", f.responses.First}, {"inter-chunk latency", f.responses.Gap}, {"e2e (whole response)", f.responses.Total},
		{"start delay", f.responses.StartDelay},
	} {
		t.Add(append([]string{times.name}, quantiles(times.h, .5, .9, .95, .99, 1)...)...)
	}
	return t
}

const maxTimeRows = 30

func (f *finiteRun) timeTable() verdict.Table {
	t := newTable("Over time", "started: requests that started in the period; in flight: at its end; other columns: responses that ended in it; ttft and inter-chunk latency of complete responses, in ms",
		"time UTC|started|complete|other states|in flight|ttft p50|p99|inter-chunk p50|p99")
	width := (len(f.responses.Series) + maxTimeRows - 1) / maxTimeRows
	for part := range slices.Chunk(f.responses.Series, max(width, 1)) {
		started, complete, otherStates := int64(0), int64(0), int64(0)
		first, gap := shard.NewHistogram(), shard.NewHistogram()
		for _, b := range part {
			started += b.Started
			for state, n := range b.States {
				if state == ledger.ResponseComplete {
					complete += n
				} else {
					otherStates += n
				}
			}
			unpackInto(first, b.First)
			unpackInto(gap, b.Gap)
		}
		cells := row(time.Unix(part[0].Unix, 0).UTC().Format(time.TimeOnly), started, complete, otherStates, part[len(part)-1].InFlight)
		t.Add(slices.Concat(cells, quantiles(first, .5, .99), quantiles(gap, .5, .99))...)
	}
	return t
}

// unpackInto adds p, if not nil, to h. The merge has already checked that p can be unpacked.
func unpackInto(h *shard.Histogram, p *shard.Packed) {
	if p == nil {
		return
	}
	if unpacked, err := p.Unpack(); err == nil {
		h.Merge(unpacked)
	}
}

const maxFindings = 50

func (f *finiteRun) findingTables() []verdict.Table {
	if len(f.responses.Findings) == 0 {
		return nil
	}
	note, count := "", len(f.responses.Findings)
	if count > maxFindings {
		note = fmt.Sprintf("the first %d of %d; verdict.json has all", maxFindings, count)
	}
	t := newTable("Findings", note, "request")
	for i := range f.responses.Findings[:min(count, maxFindings)] {
		t.Add(strings.TrimPrefix(verdict.ResponseSentence(&f.responses.Findings[i]), "request "))
	}
	return []verdict.Table{t}
}

func (f *finiteRun) metrics() []verdict.Metric {
	notComplete := f.expectedComplete() - f.v.Complete
	metrics := []verdict.Metric{
		{Name: "responses not complete", Value: float64(notComplete), Fault: true},
		{Name: "chunks missed", Value: float64(f.chunks.Missed), Fault: true},
	}
	if f.gauge.name != "" && f.gauge.problem == "" {
		metrics = append(metrics, verdict.Metric{Name: "abandoned requests open", Unit: "s", Value: f.gauge.open.Seconds()})
	}
	if f.v.Complete == 0 {
		return metrics
	}
	return append(metrics,
		verdict.Metric{Name: "ttft p50", Unit: "ms", Value: f.v.TTFT.P50},
		verdict.Metric{Name: "ttft p99", Unit: "ms", Value: f.v.TTFT.P99},
		verdict.Metric{Name: "inter-chunk latency p99", Unit: "ms", Value: f.v.InterChunkLatency.P99},
		verdict.Metric{Name: "e2e p99", Unit: "ms", Value: f.v.E2E.P99},
	)
}
