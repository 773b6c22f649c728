package ledger

import (
	"slices"
	"time"
)

// A sum is the result of one of the two counts.
type sum struct {
	received, unsent, tail, duplicated, reordered, corrupted, late uint64
	filled, hidden                                                 uint64
	maxGap, maxLateness                                            time.Duration

	findings []Finding
	unlisted int
}

// noops is how many distinct ones came.
func (s *sum) noops() uint64 { return s.received + s.corrupted }

func (s *sum) find(f Finding) {
	if len(s.findings) >= maxFindings || f.Kind == KindLate && s.late > maxLateFindings {
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
	r.Received, r.Unsent, r.Tail = s.received, s.unsent, s.tail
	r.Duplicated, r.Reordered, r.Corrupted, r.Late = s.duplicated, s.reordered, s.corrupted, s.late
	r.Filled, r.Hidden, r.MaxGap, r.MaxLateness = s.filled, s.hidden, s.maxGap, s.maxLateness
}
