package ledger

import (
	"cmp"
	"slices"
)

// maxRanges is the default maximum number of holes of one client. It also limits its lists of corrupted messages and of
// pending messages. The numbers of further holes stay counted as lost, even if they arrive later. They then also count
// as duplicated, which is a fault of the wrong kind.
const maxRanges = 64

// A hole is a range of numbers that were skipped and may still arrive.
type hole struct {
	from, to uint64
	at       Instant
	// separate reports whether the client may not have been subscribed when the messages of the hole were sent. The
	// hole is then between two streams, of which the second did not resume the first, or before the first number that
	// arrived. Only the type deliveries sets it.
	separate bool
}

func (h hole) size() uint64 { return h.to - h.from + 1 }

func (h hole) finding() Finding {
	return Finding{Kind: KindLost, From: h.from, To: h.to, Count: h.size(), At: h.at}
}

// numbers records which numbers of the present numbering arrived.
type numbers struct {
	highest        uint64
	holes          []hole
	unlistedLosses uint64 // missing numbers of unlisted holes, and of earlier numberings
	limit          int16  // maximum number of holes; 0 means maxRanges
	known          bool   // a number of this numbering arrived
}

type placement int

const (
	inOrder  placement = iota // the next number, or a later one
	filled                    // a new number below the highest one
	repeated                  // a number that arrived before
)

type numberResult struct {
	placement
	growth    uint64  // increase of the highest number
	skippedAt Instant // time at which the filled hole was opened
}

func (n *numbers) record(seq uint64, at Instant) (s numberResult) {
	if seq > n.highest {
		if seq > n.highest+1 {
			n.open(hole{from: n.highest + 1, to: seq - 1, at: at})
		}
		s.growth = seq - n.highest
		n.highest = seq
		return s
	}
	i := slices.IndexFunc(n.holes, func(h hole) bool { return seq >= h.from && seq <= h.to })
	if i < 0 {
		s.placement = repeated
		return s
	}
	s.placement, s.skippedAt = filled, n.holes[i].at
	n.fill(i, seq)
	return s
}

// open adds a hole. If the list is full, open adds the numbers of the hole to unlistedLosses.
func (n *numbers) open(h hole) {
	if len(n.holes) >= int(cmp.Or(n.limit, maxRanges)) {
		n.unlistedLosses += h.size()
		return
	}
	n.holes = append(n.holes, h)
}

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

// restart starts a new numbering, and returns the holes of the old one, which can no longer be filled.
func (n *numbers) restart() (lost []hole) {
	lost = n.holes
	n.unlistedLosses += n.missing()
	n.holes, n.known, n.highest = nil, false, 0
	return lost
}

// lostCount returns the number of missing numbers, including those of unlisted holes and of earlier numberings.
func (n *numbers) lostCount() uint64 { return n.unlistedLosses + n.missing() }

// missing returns the number of missing numbers in the listed holes.
func (n *numbers) missing() (sum uint64) {
	for _, h := range n.holes {
		sum += h.size()
	}
	return sum
}
