package ledger

import (
	"slices"
	"time"
)

// A sum is the result of one of the two counts.
type sum struct {
	Counts
	maxGap, maxLateness time.Duration

	findings []Finding
	unlisted int
}

func (s *sum) find(f Finding) {
	if len(s.findings) >= maxFindings || f.Kind == KindLate && s.Late > maxLateFindings {
		s.unlisted++
		return
	}
	s.findings = append(s.findings, f)
}

// withdraw removes the newest finding of that kind and time.
func (s *sum) withdraw(kind Kind, at Instant) {
	for i, f := range slices.Backward(s.findings) {
		if f.Kind == kind && f.At == at {
			s.findings = slices.Delete(s.findings, i, i+1)
			return
		}
	}
	s.unlisted--
}

// found is find without room for a Finding on the caller's stack; see Ledger.Noop.
//
//go:noinline
func (s *sum) found(kind Kind, from uint64, at Instant) {
	s.find(Finding{Kind: kind, From: from, At: at})
}

// fill writes the counts into a record.
func (s *sum) fill(r *Record) {
	r.Counts, r.MaxGap, r.MaxLateness = s.Counts, s.maxGap, s.maxLateness
}
