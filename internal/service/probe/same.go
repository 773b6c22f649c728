package probe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
)

// leastShared is the number of messages that streams must have in common to be compared with each other.
const leastShared = 3

// findSame returns the message of a description by which clients are compared with each other: the events and the part of them that
// all streams received in the same order. nil: there is none. is has what else was found.
func (f *findings) findSame(is object) object {
	if len(f.s.published) > 0 {
		return nil
	}
	names := f.sharedNames()
	for _, source := range f.sameSources() {
		shared := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return f.shared(source, name) == 0 })
		if len(shared) == 0 {
			continue
		}
		out := object{}
		if len(shared) < len(names) || f.greets(shared) {
			var events []any
			for _, name := range shared {
				events = append(events, name)
			}
			out.add("event", events, "All streams received the same events of these names.")
		}
		count := 0
		for _, name := range shared {
			count += f.shared(source, name)
		}
		out.add("same", source, f.sameNotes(source, count)...)
		for _, one := range is {
			if one.name == "sentAt" {
				out = append(out, one)
			}
		}
		return out
	}
	return nil
}

// sharedNames are the names of events with data that are no heartbeats, and came over a second after the start of a stream.
func (f *findings) sharedNames() (names []string) {
	for _, u := range units(f.messages(plain)) {
		if name := u.EventName(); !slices.Contains(names, name) && len(name) <= maxQuoted && f.steady(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// steady reports whether events of a name came not only at the start of streams.
func (f *findings) steady(name string) bool {
	return slices.ContainsFunc(f.messages(plain), func(one series) bool {
		return slices.ContainsFunc(one.units, func(u *unit) bool { return u.EventName() == name && u.at.Sub(one.t.head) > f.s.Pace })
	})
}

// greets reports whether streams received other events with data than those.
func (f *findings) greets(names []string) bool {
	return slices.ContainsFunc(units(f.messages(plain)), func(u *unit) bool { return !slices.Contains(names, u.EventName()) })
}

// sameSources are the parts of a message that may be the same for all streams: the data, a part of it, or the id.
func (f *findings) sameSources() []string {
	all := units(f.messages(plain))
	if len(all) == 0 {
		return nil
	}
	out := []string{"data"}
	for _, source := range sources(all[len(all)-1].Block) {
		if kind, _, _ := strings.Cut(source, ":"); source != "data" && kind != "comment" {
			out = append(out, source)
		}
	}
	return out
}

// A seen is a message of one stream.
type seen struct {
	print uint64
	at    time.Time
}

// shared returns how many messages of a name all streams that were open together received, in the same order; 0: they differ, or are
// too few, or mostly the same.
func (f *findings) shared(source, name string) int {
	s := compiled(`{"url":"{base}"}`, string(asJSON(object{{name: "same", value: source}})), "")
	if s == nil {
		return 0
	}
	var all [][]seen
	var from, to time.Time
	for _, one := range f.messages(plain) {
		if one.t == f.s.cut || len(one.units) == 0 {
			continue
		}
		var list []seen
		for _, u := range one.units {
			if u.EventName() != name {
				continue
			}
			reading := s.Reader("").Read(&u.Block)
			if reading.Kind != service.Delivery || reading.Err != nil {
				return 0
			}
			list = append(list, seen{reading.Print, u.at})
		}
		all = append(all, list)
		if head := one.t.head.Add(f.s.Pace); from.IsZero() || head.After(from) {
			from = head
		}
		if end := one.t.endedAt.Add(-f.s.Pace); to.IsZero() || end.Before(to) {
			to = end
		}
	}
	return agree(all, from, to)
}

// agree returns how many messages between two times all streams received in the same order; 0: see shared.
func agree(all [][]seen, from, to time.Time) int {
	if len(all) < 2 {
		return 0
	}
	var first []uint64
	distinct, changes := map[uint64]bool{}, 0
	for _, m := range all[0] {
		if m.at.After(from) && m.at.Before(to) {
			if last := len(first) - 1; last < 0 || first[last] != m.print {
				changes++
			}
			first = append(first, m.print)
			distinct[m.print] = true
		}
	}
	if len(distinct) < leastShared || 3*changes < len(first) {
		return 0
	}
	for _, other := range all[1:] {
		prints := make([]uint64, len(other))
		for i, m := range other {
			prints[i] = m.print
		}
		found := false
		for i := 0; i+len(first) <= len(prints) && !found; i++ {
			found = slices.Equal(prints[i:i+len(first)], first)
		}
		if !found {
			return 0
		}
	}
	return len(first)
}

// sameNotes states what was seen of messages that are the same for all streams.
func (f *findings) sameNotes(source string, count int) []string {
	notes := []string{fmt.Sprintf("All streams received the same %s in the same order there. A soak compares its clients with each other.", format.Count(count, "message"))}
	if source != "data" {
		notes = append(notes, "The rest of the data differed between streams.")
	}
	if n := f.history(); n > 0 {
		notes = append(notes, fmt.Sprintf("A new stream began with %s that others had received before it opened; these are not expected of others.", format.Count(n, "message")))
	}
	return notes
}

// history returns how many messages a stream that opened later brought again.
func (f *findings) history() (n int) {
	for _, late := range f.messages(fresh) {
		known := map[string]bool{}
		for _, one := range f.messages(plain) {
			for _, u := range one.units {
				if u.at.Before(late.t.asked) {
					known[string(u.Data)] = true
				}
			}
		}
		for _, u := range late.units {
			if u.at.Sub(late.t.head) < f.s.Pace && known[string(u.Data)] {
				n++
			}
		}
	}
	return n
}
