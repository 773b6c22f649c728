package report

import (
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// responses returns the charts of responses that end by themselves.
func (s *pageBuilder) responses() Section {
	out := Section{ID: "responses", Title: "Responses over time", Short: "Responses"}
	responses := s.Merged.Responses
	if responses == nil || len(responses.Series) == 0 || s.series.n == 0 {
		return out
	}
	states := map[ledger.ResponseState]*[]float64{}
	var started, inFlight, ttft50, ttft99, gap50, gap99 []float64
	for _, b := range responses.Series {
		at := b.Unix + s.series.step // a point represents the step that ends there
		s.series.set(&started, at, float64(b.Started))
		s.series.set(&inFlight, at, float64(b.InFlight))
		for _, state := range ledger.ResponseStates {
			if n := b.States[state]; responses.States[state] > 0 {
				if states[state] == nil {
					states[state] = new([]float64)
				}
				s.series.set(states[state], at, float64(n))
			}
		}
		s.setQuantiles(b.First, at, &ttft50, &ttft99)
		s.setQuantiles(b.Gap, at, &gap50, &gap99)
	}
	count := &Chart{ID: "responses", Kind: Timeline, Title: "Responses", Note: "in each period of 5 s; started: requests that started in it; in flight: at its end; others: responses that ended in it", Wide: true}
	count.Series = append(count.Series, splitAtGaps("started", "dashed", started, s.series.n), splitAtGaps("in flight", "", inFlight, s.series.n))
	for _, state := range ledger.ResponseStates {
		if values := states[state]; values != nil {
			count.Series = append(count.Series, splitAtGaps(string(state), "", *values, s.series.n))
		}
	}
	percentile := &Chart{ID: "quantiles", Kind: Quantile, Title: "By percentile", Note: "complete responses; both axes are logarithmic", Unit: "ms", Wide: true}
	for _, d := range []distribution{{"ttft", responses.First}, {"inter-chunk latency", responses.Gap}, {"e2e", responses.Total}} {
		if d.h.Count() > 0 {
			percentile.Series = append(percentile.Series, percentiles(d.name, d.h))
		}
	}
	out.Charts = []*Chart{
		count,
		{ID: "ttft", Kind: Timeline, Title: "Time to first content", Note: "from the intended start", Unit: "ms", Series: []Series{splitAtGaps("p99", "", ttft99, s.series.sampleGap()), splitAtGaps("p50", "", ttft50, s.series.sampleGap())}},
		{ID: "gaps", Kind: Timeline, Title: "Inter-chunk latency", Unit: "ms", Series: []Series{splitAtGaps("p99", "", gap99, s.series.sampleGap()), splitAtGaps("p50", "", gap50, s.series.sampleGap())}},
	}
	if len(percentile.Series) > 0 { // a run in progress has no percentiles
		out.Charts = append(out.Charts, percentile)
	}
	return out
}

func (s *pageBuilder) setQuantiles(packed *shard.Packed, at int64, p50, p99 *[]float64) {
	if packed == nil {
		return
	}
	if h, err := packed.Unpack(); err == nil {
		s.series.set(p50, at, format.InMilliseconds(h.Quantile(.5)))
		s.series.set(p99, at, format.InMilliseconds(h.Quantile(.99)))
	}
}
