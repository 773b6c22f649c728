// Package feed aligns the messages that the streams of several runners received from one topic without numbers. It
// numbers the messages of the topic, and rewrites the record of each client with these numbers.
//
// The majority of the streams decides the order of the messages, and whether a message is a copy of another one. The
// result does not depend on which stream received a message first.
package feed

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A Log is the log of the topic on one runner: see ledger.Log.
type Log struct {
	Entries []ledger.Entry
	Extras  []ledger.Extra
	Dropped uint64 // number of messages beyond ledger.MaxEntries
	// StartedUS is when the runner started, in microseconds since 1970 by its clock.
	StartedUS int64
}

// Records yields the records of the clients of the topic, with the indexes of their logs.
type Records = iter.Seq2[int, *ledger.Record]

// A Feed holds the messages of one topic, from number 1 on.
type Feed struct {
	Messages []Message
	// AnyOrder reports whether the service may reorder messages. Repeats reports whether it may send a message twice.
	AnyOrder, Repeats bool
	// JoinTime is the time after the start of a stream in which a message with repeated content has an uncertain place.
	JoinTime time.Duration
	// SharedCopies is the number of possible copies that several open streams received: over a quarter of them, but not
	// all.
	SharedCopies int

	logs       []*Log
	nodes      []node     // by id; 0 is the head of the list
	ids        [][]uint32 // per log: ids of its entries
	orders     [][]uint32 // per log: its numbers in the order of most of its streams, or nil if that order is ascending
	extras     [][]uint32 // per log: ids of its extras
	disorders  []disorder
	disorderOf map[uint32]int    // index in disorders by id
	missing    [][]ledger.Range  // per log: numbers of messages that it lacks
	unnumbered [][]uint64        // per log: its numbers of copies and changed messages
	originals  map[uint32]uint32 // see changes
	// repeated reports whether a message has the content of an earlier one.
	repeated    bool
	series      series
	offsets     [][]offset       // see offset
	delays      []ledger.Instant // per log: see setDelays
	sameNumbers []bool           // per log: its entries have the numbers of the feed
}

// A Message is one message of the topic.
type Message struct {
	Count uint32 // streams that received it
	Live  bool   // clients are expected to receive it; see ledger.Entry, copies and dropUnproven
	// At is the first arrival by the clock of the first log. If the order of the messages contradicts that time, At is
	// the earliest possible arrival. Doubt is the time from At to the latest possible arrival.
	At, Doubt ledger.Instant

	id uint32
}

// A node is a message that may turn out to be a copy. Nodes form a list in the order of the messages.
type node struct {
	print         uint64
	at            ledger.Instant // first arrival in the first log that has the message, by the clock of log 0
	next          uint32
	previous      uint32
	count         uint32
	number        uint32 // 0: a copy or a changed message
	log           int32  // index of the last log that has the message
	live          bool   // see ledger.Entry
	doubtful      bool   // may be a copy
	copied        bool   // see ledger.Extra.Resumed
	repeated      bool   // an earlier node has the same print
	repeatedLater bool   // a later node has the same print; set only in the first node with the print
}

// A disorder is a part of the list in which streams received messages in different orders.
type disorder struct {
	ids    []uint32
	locals [][]uint64 // per log: its numbers of these messages, ascending
}

// Align returns the feed of a topic from the logs of its runners and the records of its clients.
func Align(logs []*Log, anyOrder, repeats bool, records Records) *Feed {
	f := &Feed{AnyOrder: anyOrder, Repeats: repeats, JoinTime: time.Second, logs: logs, nodes: make([]node, 1), disorderOf: map[uint32]int{}}
	records = repairAll(logs, repeats, records)
	index := map[uint64]uint32{}
	for i := range logs {
		f.link(i, majorityOrder(i, logs[i], records), index)
	}
	f.offsets = make([][]offset, len(logs))
	order := f.order()
	f.agreeOnOrder(order, records)
	order = f.addExtras(order)
	f.number(order, records)
	f.compare()
	f.setDelays(records)
	if f.certifies() {
		f.setSeries(records)
		f.cover(records)
		f.dropUnproven()
	}
	f.orderTimes()
	return f
}

func (f *Feed) order() []uint32 {
	order := make([]uint32, 0, len(f.nodes)-1)
	for id := f.nodes[0].next; id != 0; id = f.nodes[id].next {
		order = append(order, id)
	}
	return order
}

// addExtras adds the extras of the logs after the messages that they followed, or counts them at an equal entry.
func (f *Feed) addExtras(order []uint32) []uint32 {
	followers := map[uint32][]uint32{}
	f.extras = make([][]uint32, len(f.logs))
	place := f.places(order)
	for log, l := range f.logs {
		if len(l.Extras) == 0 {
			continue
		}
		has := make([]bool, len(f.nodes)+len(l.Extras))
		for _, id := range f.ids[log] {
			has[id] = true
		}
		for _, x := range l.Extras {
			after := uint32(0)
			if x.After > 0 {
				after = f.ids[log][x.After-1]
			}
			id := f.idOfExtra(after, x, order, place, followers[after], has)
			if id == 0 {
				id = uint32(len(f.nodes)) // #nosec G115 -- bounded by the logs
				f.nodes = append(f.nodes, node{print: x.Print, log: int32(log), live: true, copied: true, repeated: true})
				followers[after] = append(followers[after], id)
			}
			has[id] = true
			n := &f.nodes[id]
			n.count, n.copied = n.count+x.Count, n.copied && x.Resumed
			f.extras[log] = append(f.extras[log], id)
		}
	}
	if len(followers) == 0 {
		return order
	}
	out := make([]uint32, 0, len(f.nodes)-1)
	out = append(out, followers[0]...)
	for _, id := range order {
		out = append(append(out, id), followers[id]...)
	}
	return out
}

// idOfExtra returns the id of the message that equals an extra, or 0. has marks the messages of the log of the extra.
func (f *Feed) idOfExtra(after uint32, x ledger.Extra, order, place, followers []uint32, has []bool) uint32 {
	next := 0
	if after != 0 {
		next = int(place[after]) + 1
	}
	for _, ids := range [][]uint32{order[next:min(next+searchRange, len(order))], order[max(next-lookback, 0):next], followers} {
		for _, id := range ids {
			if f.nodes[id].print == x.Print && !has[id] {
				return id
			}
		}
	}
	return 0
}

func (f *Feed) places(order []uint32) []uint32 {
	place := make([]uint32, len(f.nodes))
	for i, id := range order {
		place[id] = uint32(i)
	}
	return place
}

// number numbers the messages that are neither copies nor changed messages. A message with repeated content is a copy
// if at most half of the open streams received it.
func (f *Feed) number(order []uint32, records Records) {
	copies := f.copies(order, records)
	f.originals = f.changes(order, copies, records)
	for _, id := range order {
		n := &f.nodes[id]
		if _, isChanged := f.originals[id]; isChanged || copies[id] {
			continue
		}
		f.repeated = f.repeated || n.repeated
		n.number = uint32(len(f.Messages)) + 1 // #nosec G115 -- bounded by the logs
		f.Messages = append(f.Messages, Message{Count: n.count, Live: n.live && !n.doubtful, At: math.MaxInt64, id: id})
	}
	for log := range f.logs {
		shift := f.offset(log, 0)
		for i, id := range f.ids[log] {
			f.setArrival(id, f.logs[log].Entries[i].At+shift)
		}
		for i, id := range f.extras[log] {
			f.setArrival(id, f.logs[log].Extras[i].At+shift)
		}
	}
}

func (f *Feed) setArrival(id uint32, at ledger.Instant) {
	if n := f.nodes[id].number; n > 0 {
		m := &f.Messages[n-1]
		m.At = min(m.At, at)
	}
}

// A doubt is a message that may be a copy, with its first arrival by the clock of a log.
type doubt struct {
	id  uint32
	log int
	at  ledger.Instant
}

// edgeTime is the time at both ends of a stream in which the stream may or may not receive a message.
var edgeTime = time.Second

// copies returns the messages that are copies. Other possible copies become doubtful: no client is expected to receive
// them.
func (f *Feed) copies(order []uint32, records Records) map[uint32]bool {
	copies := map[uint32]bool{}
	for _, ids := range f.extras {
		for _, id := range ids {
			copies[id] = f.nodes[id].copied
		}
	}
	doubts := f.doubts(records)
	if len(doubts) == 0 {
		return copies
	}
	place := f.places(order)
	minOpen, maxOpen := map[uint32]uint32{}, map[uint32]uint32{} // by id: limits of the number of clients with an open stream
	for log, r := range records {
		last := f.lastPlace(log, r, place)
		for _, d := range doubts {
			at := d.at + f.offset(d.log, log)
			passed := last >= int(place[d.id])
			if passed && wasOpen(r, at, edgeTime) {
				minOpen[d.id]++
			}
			if wasOpen(r, at, -edgeTime) {
				maxOpen[d.id]++
			}
		}
	}
	for _, d := range doubts {
		n := &f.nodes[d.id]
		copies[d.id] = 2*n.count <= minOpen[d.id]
		n.doubtful = 2*n.count <= maxOpen[d.id] || f.Repeats && n.count < minOpen[d.id]
		if n.count > 1 && n.count < minOpen[d.id] && 4*n.count > minOpen[d.id] {
			f.SharedCopies++
		}
	}
	return copies
}

// lastPlace returns the place of the last message that a client received, or -1 if it received none.
func (f *Feed) lastPlace(log int, r *ledger.Record, place []uint32) int {
	last := -1
	for n := r.Last; n > 0 && n >= r.First; n-- {
		id := f.ids[log][n-1]
		if !r.HasReceived(n) {
			continue
		}
		last = max(last, int(place[id]))
		if _, isDisordered := f.disorderOf[id]; !isDisordered {
			break
		}
	}
	return last
}

// wasOpen reports whether a stream of a client was open from margin before an instant to margin after it. If margin
// is negative, the stream may have opened later or ended earlier by up to that time.
func wasOpen(r *ledger.Record, at, margin ledger.Instant) bool {
	return slices.ContainsFunc(r.Spans, func(s ledger.Span) bool { return s.From+margin <= at && (s.To == 0 || at <= s.To-margin) })
}

// doubts returns the messages with repeated content that at most half of the clients received. If the service may send
// a message twice, it returns all messages with repeated content.
func (f *Feed) doubts(records Records) (doubts []doubt) {
	var clients uint32
	for range records {
		clients++
	}
	found := map[uint32]bool{}
	for log, l := range f.logs {
		add := func(id uint32, at ledger.Instant) {
			if n := &f.nodes[id]; n.repeated && !n.copied && (f.Repeats || 2*n.count <= clients) && !found[id] {
				found[id], doubts = true, append(doubts, doubt{id, log, at})
			}
		}
		for i := range l.Entries {
			add(f.ids[log][i], l.Entries[i].At)
		}
		for i := range l.Extras {
			add(f.extras[log][i], l.Extras[i].At)
		}
	}
	return doubts
}

// compare sets missing, unnumbered and sameNumbers of each log.
func (f *Feed) compare() {
	f.missing, f.sameNumbers, f.unnumbered = make([][]ledger.Range, len(f.logs)), make([]bool, len(f.logs)), make([][]uint64, len(f.logs))
	for log, ids := range f.ids {
		has := make([]bool, len(f.Messages)+1)
		same := len(ids) == len(f.Messages) && len(f.disorders) == 0
		for i, id := range ids {
			n := f.nodes[id].number
			has[n] = true
			if n == 0 {
				f.unnumbered[log] = append(f.unnumbered[log], uint64(i)+1)
			}
			same = same && int(n) == i+1
		}
		for n := 1; n < len(has); n++ {
			if !has[n] {
				f.missing[log] = ledger.AppendNumber(f.missing[log], uint64(n))
			}
		}
		f.sameNumbers[log] = same
	}
}

// HasSingleRecipients reports whether most messages reached only one client, and several clients received mostly such
// messages. The clients then do not receive the same messages.
func (f *Feed) HasSingleRecipients(records Records) bool {
	singles := 0
	single := make([]bool, len(f.Messages)+1)
	for i, m := range f.Messages {
		if m.Count == 1 {
			single[i+1] = true
			singles++
		}
	}
	if 2*singles <= len(f.Messages) {
		return false
	}
	clients := 0
	for log, r := range records {
		count := 0
		for n := max(r.First, 1); n <= r.Last; n++ {
			if number := f.nodes[f.ids[log][n-1]].number; single[number] && r.HasReceived(n) {
				count++
			}
		}
		if uint64(count)*2 > r.Received {
			clients++
		}
	}
	return clients > 1
}
