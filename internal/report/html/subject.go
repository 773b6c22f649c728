package html

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A subject is a run of any kind, and what several sections of its page read.
type subject struct {
	*Run
	v      *verdict.Verdict
	series *series
	bands  []Band
	spikes []spike
}

func newSubject(r *Run, bands []Band) *subject {
	s := &subject{Run: r, v: r.Verdict, bands: bands}
	s.series = newSeries(r.Merged, r.Samples, r.Machine.Cores)
	s.spikes = s.findSpikes()
	return s
}

// page puts sections together; one that has nothing to say is left out.
func (s *subject) page(banner Banner, sections ...func() Section) *Page {
	p := &Page{
		Title:  fmt.Sprintf("%s %s", s.v.TestID, s.v.Verdict),
		Banner: banner,
		Time:   Axis{From: s.series.from, Step: step, N: s.series.n, Bands: s.bands},
		Files:  s.Files,
	}
	for _, section := range sections {
		if made := section(); len(made.Lead)+len(made.Tables)+len(made.Charts)+len(made.Downloads) > 0 {
			p.Sections = append(p.Sections, made)
		}
	}
	return p
}

// data is what the page was made from, to take away.
func (s *subject) data() Section {
	out := Section{ID: "data", Title: "The data itself", Short: "Data"}
	for _, f := range s.Files {
		out.Downloads = append(out.Downloads, f.Name)
	}
	if len(out.Downloads) > 0 {
		out.Notes = []string{"The page carries these files. They also lie beside it, in the folder of the run, with the runners' shards and logs."}
	}
	return out
}
