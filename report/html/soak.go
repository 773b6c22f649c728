package html

import (
	"fmt"

	"github.com/sse-soak/sse-soak/verdict"
)

// A soak is a run and what several sections of its page read.
type soak struct {
	*Run
	v      *verdict.Verdict
	series *series
	phases phases
	spikes []spike
}

// soakPage composes the page of a soak.
func soakPage(r *Run) (*Page, error) {
	s := &soak{Run: r, v: r.Verdict}
	s.series = newSeries(r.Merged, r.Samples, r.Machine.Cores)
	s.phases = phasesOf(r.Merged, s.v.StartedUnix, s.v.EndedUnix)
	s.spikes = s.findSpikes()
	p := &Page{
		Title:  fmt.Sprintf("%s %s", s.v.TestID, s.v.Verdict),
		Banner: s.banner(),
		Time:   Axis{From: s.series.from, Step: step, N: s.series.n, Bands: s.phases.bands()},
		Files:  r.Files,
	}
	for _, section := range []func() Section{
		s.criteria, s.card, s.account, s.timelines, s.lateness, s.leaks, s.spikeTable,
		s.ends, s.arithmetic, s.comparison, s.headroom, s.data,
	} {
		if made := section(); len(made.Lead)+len(made.Tables)+len(made.Charts)+len(made.Downloads) > 0 {
			p.Sections = append(p.Sections, made)
		}
	}
	return p, nil
}

// data is what the page was made from, to take away.
func (s *soak) data() Section {
	out := Section{ID: "data", Title: "The data itself", Short: "Data"}
	for _, f := range s.Files {
		out.Downloads = append(out.Downloads, f.Name)
	}
	if len(out.Downloads) > 0 {
		out.Notes = []string{"The page carries these files. They also lie beside it, in the folder of the run, with the runners' shards and logs."}
	}
	return out
}
