package html

// A soak is the subject of its page, and its phases.
type soak struct {
	*subject
	phases phases
}

// soakPage composes the page of a soak.
func soakPage(r *Run) *Page {
	phases := phasesOf(r.Merged, r.Verdict.StartedUnix, r.Verdict.EndedUnix)
	s := &soak{subject: newSubject(r, phases.bands()), phases: phases}
	return s.page(s.banner(), s.criteria, s.card, s.account, s.timelines, s.lateness, s.leaks, s.spikeTable,
		s.ends, s.arithmetic, s.comparison, s.headroom, s.data)
}
