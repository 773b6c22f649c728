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
	// apart: the numbers before it and behind it came on two streams, of which the second did not go on behind the first.
	// Only deliveries know.
	apart bool
}

func (h hole) size() uint64 { return h.to - h.from + 1 }

func (h hole) finding() Finding {
	return Finding{Kind: KindLost, From: h.from, To: h.to, Count: h.size(), At: h.at}
}

// numbers records which `id:` numbers came, since the server last began at 1.
type numbers struct {
	highest uint64
	gaps    *gaps // nil: no number was skipped yet
	limit   int16 // of holes; 0: maxRanges
	known   bool  // a number of this numbering was seen
}

// gaps are the numbers that were skipped.
type gaps struct {
	holes     []hole
	skippedAt Instant // of the hole that was filled last
	forgotten uint64  // numbers in holes beyond the limit, and in earlier numberings
}

// skipped are the gaps, to be written.
func (n *numbers) skipped() *gaps {
	if n.gaps == nil {
		n.gaps = new(gaps)
	}
	return n.gaps
}

func (n *numbers) holes() []hole {
	if n.gaps == nil {
		return nil
	}
	return n.gaps.holes
}

func (n *numbers) forgotten() uint64 {
	if n.gaps == nil {
		return 0
	}
	return n.gaps.forgotten
}

type sighting int

const (
	inOrder  sighting = iota // the next number, or a later one
	filled                   // out of order: it fills a hole
	repeated                 // seen before
)

// see records one number. advance is by how much the highest number grew.
func (n *numbers) see(seq uint64, at Instant) (s sighting, advance uint64) {
	switch {
	case seq > n.highest:
		if seq > n.highest+1 {
			n.open(hole{from: n.highest + 1, to: seq - 1, at: at})
		}
		advance = seq - n.highest
		n.highest = seq
		return inOrder, advance
	case n.fillHole(seq):
		return filled, 0
	default:
		return repeated, 0
	}
}

func (n *numbers) open(h hole) {
	gaps := n.skipped()
	if len(gaps.holes) >= int(cmp.Or(n.limit, maxRanges)) {
		gaps.forgotten += h.size()
		return
	}
	gaps.holes = append(gaps.holes, h)
}

func (n *numbers) fillHole(seq uint64) bool {
	for i := range n.holes() {
		h := &n.gaps.holes[i]
		if seq < h.from || seq > h.to {
			continue
		}
		n.gaps.skippedAt = h.at
		switch {
		case h.from == h.to:
			n.gaps.holes = slices.Delete(n.gaps.holes, i, i+1)
		case seq == h.from:
			h.from++
		case seq == h.to:
			h.to--
		default:
			rest := *h
			rest.from, h.to = seq+1, seq-1
			n.open(rest)
		}
		return true
	}
	return false
}

// restart begins a new numbering; the holes of the old one can no longer be filled.
func (n *numbers) restart() (lost []hole) {
	if lost = n.holes(); lost != nil {
		n.gaps.forgotten += countHoles(lost)
		n.gaps.holes = nil
	}
	n.known, n.highest = false, 0
	return lost
}

func countHoles(holes []hole) (sum uint64) {
	for _, h := range holes {
		sum += h.size()
	}
	return sum
}

func (n *numbers) lost() uint64 { return n.forgotten() + countHoles(n.holes()) }

// missing is how many numbers below the highest are missing and may still come.
func (n *numbers) missing() uint64 { return countHoles(n.holes()) }
