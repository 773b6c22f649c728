package feed

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// contextLength is the typical number of consecutive messages that identify a place if no message has unique content.
const contextLength = 8

// link adds the entries of a log to the list. An entry that no earlier log has follows the entry before it. order has
// the numbers of the log in the order of most streams, or is nil if this order is ascending.
func (f *Feed) link(log int, order []uint32, index map[uint64]uint32) {
	entries := f.logs[log].Entries
	if order != nil {
		entries = make([]ledger.Entry, len(order))
		for i, n := range order {
			entries[i] = f.logs[log].Entries[n-1]
		}
	}
	l := linker{Feed: f, log: int32(log), entries: entries, ids: make([]uint32, len(entries)), index: index} // #nosec G115 -- few runners
	if log > 0 && len(f.nodes) > 1 {
		l.matchUnique()
		l.setShift()
		l.dropOutliers()
		l.matchNeighbors()
		l.matchGaps()
		l.preferFirst()
	}
	l.insertOthers()
	for i, id := range l.ids {
		n := &f.nodes[id]
		n.count, n.live = n.count+entries[i].Count, n.live || entries[i].Live
	}
	ids := l.ids
	if order != nil {
		ids = make([]uint32, len(order))
		for i, n := range order {
			ids[n-1] = l.ids[i]
		}
	}
	f.ids, f.orders = append(f.ids, ids), append(f.orders, order)
}

// majorityOrder returns the numbers of a log in the order of most of its streams, or nil if all streams received them
// in ascending order.
func majorityOrder(log int, l *Log, records Records) []uint32 {
	f := &Feed{logs: []*Log{l}, nodes: make([]node, len(l.Entries)+1), disorderOf: map[uint32]int{}}
	order := make([]uint32, len(l.Entries))
	for i := range order {
		order[i] = uint32(i) + 1
	}
	f.ids, f.orders = [][]uint32{order}, [][]uint32{nil}
	recordsOfLog := func(yield func(int, *ledger.Record) bool) {
		for i, r := range records {
			if i == log && !yield(0, r) {
				return
			}
		}
	}
	majority := slices.Clone(order)
	if !f.agreeOnOrder(majority, recordsOfLog) {
		return nil
	}
	return majority
}

type linker struct {
	*Feed
	log     int32
	entries []ledger.Entry
	ids     []uint32          // per entry: the id of its message, or 0 if it has not been found
	index   map[uint64]uint32 // id of the first message with a print
	shift   ledger.Instant    // added to an instant of the log to convert it to the clock of the first log
}

func (l *linker) assign(i int, id uint32) { l.ids[i], l.nodes[id].log = id, l.log }

// fits reports whether a message has the content of an entry, and belongs to no other entry of the log.
func (l *linker) fits(i int, id uint32) bool {
	return id != 0 && l.nodes[id].print == l.entries[i].Print && l.nodes[id].log != l.log
}

// matchUnique finds messages whose content is unique in the log and in the list. If it finds none, it searches by
// context.
func (l *linker) matchUnique() {
	times := make(map[uint64]uint8, len(l.entries))
	for i := range l.entries {
		times[l.entries[i].Print] = min(times[l.entries[i].Print]+1, 2)
	}
	found := false
	for i := range l.entries {
		id, known := l.index[l.entries[i].Print]
		if known && times[l.entries[i].Print] == 1 && !l.nodes[id].repeatedLater {
			l.assign(i, id)
			found = true
		}
	}
	if !found {
		l.matchContexts()
	}
}

// matchContexts finds messages that are unique together with the messages before them. It uses the length of context
// that finds the most messages.
func (l *linker) matchContexts() {
	order := l.order()
	prints := make([]uint64, len(order))
	for i, id := range order {
		prints[i] = l.nodes[id].print
	}
	entryPrints := make([]uint64, len(l.entries))
	for i := range l.entries {
		entryPrints[i] = l.entries[i].Print
	}
	var found map[int]uint32
	for length := contextLength / 2; length <= 8*contextLength; length *= 2 {
		places, matches := contexts(prints, length), map[int]uint32{}
		for sum, i := range contexts(entryPrints, length) {
			if at, known := places[sum]; known && i >= 0 && at >= 0 {
				matches[i] = order[at]
			}
		}
		if len(matches) > len(found) {
			found = matches
		}
	}
	for i, id := range found {
		l.assign(i, id)
	}
}

// contexts maps the hash of each sequence of length messages to the place of its last message. If a sequence occurs at
// several places, its hash maps to -1.
func contexts(prints []uint64, length int) map[uint64]int {
	const prime = 0x100000001b3
	places := map[uint64]int{}
	for i := length - 1; i < len(prints); i++ {
		sum := uint64(0xcbf29ce484222325)
		for _, p := range prints[i-length+1 : i+1] {
			sum = (sum ^ p) * prime
		}
		if _, known := places[sum]; known {
			places[sum] = -1
			continue
		}
		places[sum] = i
	}
	return places
}

// dropOutliers withdraws matches that are far from the place or the time that most matches indicate. A message before
// the first stream of one runner may have the content of a message after the last stream of another runner.
func (l *linker) dropOutliers() {
	place := l.places(l.order())
	var found []int // indexes of the entries with a message
	var at []uint32 // places of these messages
	for i, id := range l.ids {
		if id != 0 {
			found, at = append(found, i), append(at, place[id])
		}
	}
	inOrder := longestAscending(at)
	last := slices.Index(inOrder, true)
	for k, i := range found {
		distance := int(at[k]) - int(at[last])
		switch id := l.ids[i]; {
		case inOrder[k]:
			last = k
		case max(distance, -distance) > searchRange || !l.isNear(i, id):
			l.ids[i], l.nodes[id].log = 0, -1
		}
	}
}

// matchNeighbors finds messages next to messages that have been found.
func (l *linker) matchNeighbors() {
	for i := 1; i < len(l.ids); i++ {
		if before := l.ids[i-1]; l.ids[i] == 0 && before != 0 && l.fits(i, l.nodes[before].next) {
			l.assign(i, l.nodes[before].next)
		}
	}
	for i := len(l.ids) - 2; i >= 0; i-- {
		if after := l.ids[i+1]; l.ids[i] == 0 && after != 0 && l.fits(i, l.nodes[after].previous) {
			l.assign(i, l.nodes[after].previous)
		}
	}
}

// matchGaps finds messages for the entries between entries with a message. It finds as many as possible in the same
// order.
func (l *linker) matchGaps() {
	for from := 0; from < len(l.ids); from++ {
		if l.ids[from] != 0 {
			continue
		}
		to := from
		for to < len(l.ids) && l.ids[to] == 0 {
			to++
		}
		l.matchGap(from, to)
		from = to
	}
}

// maxCells limits the table of matchGap.
const maxCells = 1 << 20

// matchGap finds the messages of entries[from:to], which have none so far. Before the first entry with a message, it
// prefers the last of several neighbors with the same content, because the log may begin among them.
func (l *linker) matchGap(from, to int) {
	list := l.candidates(from, to)
	count := to - from
	if len(list) == 0 || (count+1)*(len(list)+1) > maxCells {
		return
	}
	at := func(i, j int) (int, uint32) { return from + i, list[j] }
	if from == 0 && to < len(l.ids) {
		at = func(i, j int) (int, uint32) { return to - 1 - i, list[len(list)-1-j] }
	}
	// best[i][j] is the number of messages in common between the entries from i on and the list from j on.
	best := make([][]uint32, count+1)
	for i := range best {
		best[i] = make([]uint32, len(list)+1)
	}
	for i := count - 1; i >= 0; i-- {
		for j := len(list) - 1; j >= 0; j-- {
			if best[i][j] = max(best[i+1][j], best[i][j+1]); l.fits(at(i, j)) {
				best[i][j] = max(best[i][j], best[i+1][j+1]+1)
			}
		}
	}
	for i, j := 0, 0; i < count && j < len(list); {
		switch {
		case l.fits(at(i, j)) && best[i][j] == best[i+1][j+1]+1:
			l.assign(at(i, j))
			i, j = i+1, j+1
		case best[i][j] == best[i][j+1]:
			j++
		default:
			i++
		}
	}
}

// candidates returns the messages of the list that may belong to the entries of a gap, up to a limit.
func (l *linker) candidates(from, to int) (list []uint32) {
	limit := 2*(to-from) + 64
	before, after := uint32(0), uint32(0)
	if from > 0 {
		before = l.ids[from-1]
	}
	if to < len(l.ids) {
		after = l.ids[to]
	}
	if before == 0 && after != 0 {
		for id := l.nodes[after].previous; id != 0 && len(list) < limit; id = l.nodes[id].previous {
			list = append(list, id)
		}
		slices.Reverse(list)
		return list
	}
	for id := l.nodes[before].next; id != 0 && id != after && len(list) < limit; id = l.nodes[id].next {
		list = append(list, id)
	}
	return list
}

// preferFirst moves each match to the first of several neighbors with the same content, because a copy follows its
// original.
func (l *linker) preferFirst() {
	for i := range l.ids {
		for at := i; at > 0 && l.ids[at] != 0 && l.ids[at-1] == 0 && l.entries[at].Print == l.entries[at-1].Print; at-- {
			if l.distance(at-1, l.ids[at]) > max(l.distance(at, l.ids[at]), maxSpread) {
				break
			}
			l.ids[at-1], l.ids[at] = l.ids[at], 0
		}
	}
	for i := range l.ids {
		l.moveToFirst(i)
	}
}

// moveToFirst assigns an entry to the first of several neighbors with its content that arrived at about the same time.
func (l *linker) moveToFirst(i int) {
	for id := l.ids[i]; id != 0 && l.fits(i, l.nodes[id].previous) && l.distance(i, l.nodes[id].previous) <= max(l.distance(i, id), maxSpread); id = l.ids[i] {
		l.nodes[id].log = -1
		l.assign(i, l.nodes[id].previous)
	}
}

// insertOthers searches nearby for the messages that were not found, and adds the remaining ones to the list.
func (l *linker) insertOthers() {
	at := l.start()
	for i := range l.ids {
		if l.ids[i] == 0 {
			id := l.findNearby(i, at)
			if id == 0 {
				id = l.insert(l.lastBefore(at, i), i)
			}
			l.assign(i, id)
			l.moveToFirst(i)
		}
		at = l.ids[i]
	}
}

// searchRange is the number of messages before and after a place that are searched for a message that arrived in a
// different order.
const searchRange = 64

// findNearby returns the message near at that has the content of entry i and is closest to the entry in time. It
// returns 0 if no message matches.
func (l *linker) findNearby(i int, at uint32) uint32 {
	if _, known := l.index[l.entries[i].Print]; l.log == 0 || !known {
		return 0
	}
	found := uint32(0)
	consider := func(id uint32) {
		if l.fits(i, id) && l.isNear(i, id) && (found == 0 || l.distance(i, id) < l.distance(i, found)) {
			found = id
		}
	}
	before, after := at, l.nodes[at].next
	for range searchRange {
		consider(before)
		consider(after)
		if before != 0 { // 0 is the head, where the list ends
			before = l.nodes[before].previous
		}
		if after != 0 {
			after = l.nodes[after].next
		}
	}
	return found
}

// start returns the message after which the first entry belongs. It is the message before the first one that is found.
// If none is found, it is the last message that arrived no later than the entry.
func (l *linker) start() uint32 {
	for _, id := range l.ids {
		if id != 0 {
			return l.nodes[id].previous
		}
	}
	at := l.nodes[0].previous
	for at != 0 && len(l.entries) > 0 && l.nodes[at].at > l.entries[0].At+l.shift {
		at = l.nodes[at].previous
	}
	return at
}

// lastBefore returns the message after which an entry belongs. It starts at a given message, and skips the following
// messages that this log lacks and that arrived before the entry. It returns the last skipped message, or the given one
// if it skips none.
func (l *linker) lastBefore(at uint32, i int) uint32 {
	for next := l.nodes[at].next; next != 0 && l.nodes[next].log != l.log && l.nodes[next].at < l.entries[i].At+l.shift; next = l.nodes[next].next {
		at = next
	}
	return at
}

// insert adds the message of an entry after message at. 0 is the head, before the first and after the last message.
func (l *linker) insert(at uint32, i int) uint32 {
	id, print := uint32(len(l.nodes)), l.entries[i].Print // #nosec G115 -- bounded by the logs
	next := l.nodes[at].next
	n := node{print: print, at: l.entries[i].At + l.shift, next: next, previous: at, log: -1}
	if first, known := l.index[print]; known {
		n.repeated, l.nodes[first].repeatedLater = true, true
	} else {
		l.index[print] = id
	}
	l.nodes = append(l.nodes, n)
	l.nodes[at].next, l.nodes[next].previous = id, id
	return id
}
