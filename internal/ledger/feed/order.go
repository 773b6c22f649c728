package feed

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// agreeOnOrder changes order to the order of most streams. It reports whether streams received messages in different
// orders.
func (f *Feed) agreeOnOrder(order []uint32, records Records) bool {
	parts := f.disorderedParts(f.places(order), records)
	if len(parts) == 0 {
		return false
	}
	f.setDisorders(order, parts)
	groups := make([]map[string]*group, len(parts))
	for log, r := range records {
		for w := range f.disorders {
			sequence := f.sequence(w, log, r)
			if len(sequence) == 0 {
				continue
			}
			if groups[w] == nil {
				groups[w] = map[string]*group{}
			}
			key := f.key(log, sequence)
			if groups[w][key] == nil {
				groups[w][key] = &group{key: key, ids: f.idsOf(log, sequence)}
			}
			groups[w][key].streams++
		}
	}
	for w, part := range parts {
		copy(order[part[0]:], mergeOrders(groups[w], f.disorders[w].ids))
	}
	return true
}

type group struct {
	key     string
	ids     []uint32
	streams int
}

// mergeOrders returns the order that most streams received. A message that these streams lack follows the message that
// it follows on other streams.
func mergeOrders(groups map[string]*group, all []uint32) []uint32 {
	sorted := make([]*group, 0, len(groups)+1)
	for _, g := range groups {
		sorted = append(sorted, g)
	}
	slices.SortFunc(sorted, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.streams, a.streams), cmp.Compare(len(b.ids), len(a.ids)), cmp.Compare(a.key, b.key))
	})
	sorted = append(sorted, &group{ids: all})
	next := map[uint32]uint32{} // 0 is the head
	has := map[uint32]bool{}
	for _, g := range sorted {
		at := uint32(0)
		for _, id := range g.ids {
			if !has[id] {
				has[id], next[id], next[at] = true, next[at], id
			}
			at = id
		}
	}
	order := make([]uint32, 0, len(all))
	for id := next[0]; id != 0; id = next[id] {
		order = append(order, id)
	}
	return vote(order, sorted[:len(sorted)-1])
}

// maxVotes limits the computation for one disorder: the square of its number of messages, times the number of groups.
const maxVotes = 1 << 26

// vote puts each message after the messages that most streams received before it. It returns the order unchanged if the
// computation would exceed maxVotes.
func vote(order []uint32, groups []*group) []uint32 {
	if len(order)*len(order)*len(groups) > maxVotes {
		return order
	}
	at := make(map[uint32]int, len(order))
	for i, id := range order {
		at[id] = i
	}
	// before has, for each pair, the votes for the first message before the second, minus the votes against.
	before := make([]int, len(order)*len(order))
	for _, g := range groups {
		for i, a := range g.ids {
			for _, b := range g.ids[i+1:] {
				before[at[a]*len(order)+at[b]] += g.streams
				before[at[b]*len(order)+at[a]] -= g.streams
			}
		}
	}
	open := make([]int, len(order)) // per message: votes for remaining messages before it
	for i := range order {
		for j := range order {
			open[j] += max(before[i*len(order)+j], 0)
		}
	}
	out := make([]uint32, 0, len(order))
	for range order {
		next := -1
		for i := range order {
			if at[order[i]] >= 0 && (next < 0 || open[i] < open[next]) {
				next = i
			}
		}
		for j := range order {
			open[j] -= max(before[next*len(order)+j], 0)
		}
		out, at[order[next]] = append(out, order[next]), -1
	}
	return out
}

// disorderedParts returns the parts of the list that streams received in different orders, as their first and last
// places.
func (f *Feed) disorderedParts(place []uint32, records Records) (parts [][2]int) {
	add := func(places ...uint32) {
		parts = append(parts, [2]int{int(slices.Min(places)), int(slices.Max(places))})
	}
	for log, ids := range f.ids {
		at := func(i int) uint32 {
			if order := f.orders[log]; order != nil {
				i = int(order[i]) - 1
			}
			return place[ids[i]]
		}
		for i := 1; i < len(ids); i++ {
			if at(i) < at(i-1) {
				add(at(i), at(i-1))
			}
		}
	}
	for log, r := range records {
		if r.Deviations == nil {
			continue
		}
		for _, o := range r.Deviations.Overtakes {
			low, high := min(o.Number, o.By), max(o.Number, o.By)
			places := make([]uint32, 0, high-low+1)
			for n := low; n <= high; n++ {
				places = append(places, place[f.ids[log][n-1]])
			}
			add(places...)
		}
	}
	slices.SortFunc(parts, func(a, b [2]int) int { return a[0] - b[0] })
	var joined [][2]int
	for _, p := range parts {
		if last := len(joined) - 1; last >= 0 && p[0] <= joined[last][1] {
			joined[last][1] = max(joined[last][1], p[1])
			continue
		}
		joined = append(joined, p)
	}
	return joined
}

func (f *Feed) setDisorders(order []uint32, parts [][2]int) {
	f.disorders = make([]disorder, len(parts))
	for w, part := range parts {
		f.disorders[w] = disorder{ids: slices.Clone(order[part[0] : part[1]+1]), locals: make([][]uint64, len(f.logs))}
		for _, id := range f.disorders[w].ids {
			f.disorderOf[id] = w
		}
	}
	for log, ids := range f.ids {
		for i, id := range ids {
			if w, isDisordered := f.disorderOf[id]; isDisordered {
				f.disorders[w].locals[log] = append(f.disorders[w].locals[log], uint64(i)+1)
			}
		}
	}
}

// sequence returns the log numbers of the messages of a disorder, in the order in which a client received them.
func (f *Feed) sequence(w, log int, r *ledger.Record) (out []uint64) {
	locals := f.disorders[w].locals[log]
	if len(locals) == 0 || r.Last < locals[0] || r.First > locals[len(locals)-1] {
		return nil
	}
	var overtakes []ledger.Overtake
	if r.Deviations != nil {
		overtakes = r.Deviations.Overtakes
	}
	late := func(n uint64) bool {
		return slices.ContainsFunc(overtakes, func(o ledger.Overtake) bool { return o.Number == n })
	}
	for _, n := range locals {
		if !r.HasReceived(n) || late(n) {
			continue
		}
		out = append(out, n)
		for _, o := range overtakes {
			if o.By == n {
				out = append(out, o.Number)
			}
		}
	}
	return out
}

func (f *Feed) idsOf(log int, sequence []uint64) []uint32 {
	ids := make([]uint32, len(sequence))
	for i, n := range sequence {
		ids[i] = f.ids[log][n-1]
	}
	return ids
}

func (f *Feed) key(log int, sequence []uint64) string {
	text := make([]byte, 0, 4*len(sequence))
	for _, n := range sequence {
		text = binary.BigEndian.AppendUint32(text, f.ids[log][n-1])
	}
	return string(text)
}

// longestAscending reports which values belong to the longest subsequence that never descends.
func longestAscending[T cmp.Ordered](values []T) []bool {
	var ends []int                     // by length: index of the last value of a sequence
	before := make([]int, len(values)) // per value: index of the value before it in its sequence
	for i, v := range values {
		length, _ := slices.BinarySearchFunc(ends, v, func(end int, v T) int {
			if values[end] <= v {
				return -1
			}
			return 1
		})
		if before[i] = -1; length > 0 {
			before[i] = ends[length-1]
		}
		if length == len(ends) {
			ends = append(ends, i)
		}
		ends[length] = i
	}
	belongs := make([]bool, len(values))
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			belongs[i] = true
		}
	}
	return belongs
}
