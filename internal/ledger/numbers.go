package ledger

import (
	"cmp"
	"slices"
)

// maxRanges limits how many holes one connection remembers. Beyond it a hole counts as lost at once, and
// a late arrival from it as duplicated: still a fault, though of the wrong kind.
const maxRanges = 64

// A hole is a run of numbers that were skipped and may still arrive.
type hole struct {
	from, to uint64
	at       Instant
	// apart: the numbers before it and behind it arrived on two streams, of which the second did not resume the
	// first. Only deliveries have this.
	separate bool
}

func (h hole) size() uint64 { return h.to - h.from + 1 }

func (h hole) finding() Finding {
	return Finding{Kind: KindLost, From: h.from, To: h.to, Count: h.size(), At: h.at}
}

// numbers records which `id:` numbers came, since the server last began at 1.
type numbers struct {
	highest   uint64
	holes     []hole
	forgotten uint64 // numbers in holes beyond the limit, and in earlier numberings
	limit     int16  // of holes; 0: maxRanges
	known     bool   // a number of this numbering was seen
}

// A sighting is the place of a number among those that came before.
type sighting int

const (
	inOrder  sighting = iota // the next number, or a later one
	filled                   // out of order: it fills a hole
	repeated                 // seen before
)

// A sight is the result of numbers.see.
type sight struct {
	sighting
	advance   uint64  // how much the highest number grew
	skippedAt Instant // when a filled hole was opened
}

// record records one number.
func (n *numbers) record(seq uint64, at Instant) (s sight) {
	if seq > n.highest {
		if seq > n.highest+1 {
			n.open(hole{from: n.highest + 1, to: seq - 1, at: at})
		}
		s.advance = seq - n.highest
		n.highest = seq
		return s
	}
	i := slices.IndexFunc(n.holes, func(h hole) bool { return seq >= h.from && seq <= h.to })
	if i < 0 {
		s.sighting = repeated
		return s
	}
	s.sighting, s.skippedAt = filled, n.holes[i].at
	n.fill(i, seq)
	return s
}

func (n *numbers) open(h hole) {
	if len(n.holes) >= int(cmp.Or(n.limit, maxRanges)) {
		n.forgotten += h.size()
		return
	}
	n.holes = append(n.holes, h)
}

// fill removes a number from a hole.
func (n *numbers) fill(i int, seq uint64) {
	h := &n.holes[i]
	switch {
	case h.from == h.to:
		n.holes = slices.Delete(n.holes, i, i+1)
	case seq == h.from:
		h.from++
	case seq == h.to:
		h.to--
	default:
		rest := *h
		rest.from, h.to = seq+1, seq-1
		n.open(rest)
	}
}

// restart begins a new numbering. The holes of the old one can no longer be filled.
func (n *numbers) restart() (lost []hole) {
	lost = n.holes
	n.forgotten += n.missing()
	n.holes, n.known, n.highest = nil, false, 0
	return lost
}

// lostCount returns the number of missing numbers, those that can no longer come included.
func (n *numbers) lostCount() uint64 { return n.forgotten + n.missing() }

// missing returns the number of missing numbers below the highest that may still come.
func (n *numbers) missing() (sum uint64) {
	for _, h := range n.holes {
		sum += h.size()
	}
	return sum
}
