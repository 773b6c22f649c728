package feed

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// changes returns the ids of the changed messages, with the ids of their originals. A changed message is a message that
// only one stream received, in place of a message that other streams received.
func (f *Feed) changes(order []uint32, copies map[uint32]bool, records Records) map[uint32]uint32 {
	singles := make([][]uint64, len(f.logs)) // per log: its numbers of messages that only one stream received
	found := false
	for log, ids := range f.ids {
		for i, id := range ids {
			if n := &f.nodes[id]; n.count == 1 && n.live && !n.doubtful && !copies[id] {
				singles[log], found = append(singles[log], uint64(i)+1), true
			}
		}
	}
	if !found {
		return nil
	}
	c := changes{Feed: f, order: order, copies: copies, place: f.places(order), numbers: make([]map[uint32]uint64, len(f.logs)), originals: map[uint32]uint32{}}
	for log, r := range records {
		for _, n := range singles[log] {
			if r.HasReceived(n) {
				c.compare(log, r, n)
			}
		}
	}
	return c.originals
}

type changes struct {
	*Feed
	order     []uint32
	copies    map[uint32]bool
	place     []uint32
	numbers   []map[uint32]uint64 // per log: its numbers by id, or nil if not needed so far
	originals map[uint32]uint32   // the result
}

// compare finds the original of message n, which only this client received. The original is a message close to n
// that this client lacks, between messages that the same stream received.
func (c *changes) compare(log int, r *ledger.Record, n uint64) {
	id := c.ids[log][n-1]
	at, from, to := int(c.place[id]), r.First, r.Last
	if low, high := streamOf(r, n); low > 0 {
		from, to = low, high
	}
	first, last := int(c.place[c.ids[log][from-1]]), int(c.place[c.ids[log][to-1]])
	for distance := 1; distance <= lookback; distance++ {
		for _, i := range []int{at - distance, at + distance} {
			if i <= first || i >= last {
				continue
			}
			other := c.order[i]
			if n := &c.nodes[other]; n.count > 1 && !n.doubtful && !c.copies[other] && c.lacks(log, r, other) {
				c.originals[id] = other
				return
			}
		}
	}
}

func (c *changes) lacks(log int, r *ledger.Record, id uint32) bool {
	if c.numbers[log] == nil {
		c.numbers[log] = make(map[uint32]uint64, len(c.ids[log]))
		for i, id := range c.ids[log] {
			c.numbers[log][id] = uint64(i) + 1
		}
	}
	if n, known := c.numbers[log][id]; known && r.HasReceived(n) {
		return false
	}
	return r.Deviations == nil || !slices.ContainsFunc(r.Deviations.Repeats, func(a ledger.Repeat) bool { return c.extras[log][a.Extra] == id })
}

// streamOf returns the lowest and the highest number of the chain of streams that received a message, or 0 if no listed
// stream did.
func streamOf(r *ledger.Record, n uint64) (low, high uint64) {
	found := false
	for _, s := range r.Spans {
		if !s.Resumed {
			if found {
				return low, high
			}
			low, high = 0, 0
		}
		if s.First == 0 {
			continue
		}
		if low == 0 || s.First < low {
			low = s.First
		}
		high = max(high, s.Last)
		found = found || n >= s.First && n <= s.Last
	}
	if !found {
		return 0, 0
	}
	return low, high
}
