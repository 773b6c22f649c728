package probe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
)

// minShared is the number of different messages that streams must have in common to be compared with each other.
const minShared = 3

// findShared returns a message field that lets a run compare its clients with each other. The field names events, and
// the part of these events that all streams received in the same order. It keeps sentAt of found. findShared returns
// nil if streams did not receive the same messages, or if the probe published messages.
func (f *findings) findShared(found object) object {
	if len(f.session.published) > 0 {
		return nil
	}
	names := f.sharedNames()
	for _, source := range f.sharedSources() {
		out, count := object{}, f.countShared(source, "")
		if count == 0 || f.hasGreetings(names) {
			out, count = f.sharedEvents(source, names)
		}
		if count == 0 {
			continue
		}
		out.add("same", source, f.sharedNotes(source, count)...)
		for _, member := range found {
			if member.name == "sentAt" {
				out = append(out, member)
			}
		}
		return out
	}
	return nil
}

// sharedEvents returns a message field with the names whose events all streams received in the same order, and the
// number of these events. The field is empty if all events have these names.
func (f *findings) sharedEvents(source string, names []string) (out object, count int) {
	var shared []any
	for _, name := range names {
		if n := f.countShared(source, name); n > 0 {
			shared, count = append(shared, name), count+n
		}
	}
	isOther := func(u *unit) bool { return !slices.Contains(shared, any(u.EventName())) }
	if slices.ContainsFunc(units(f.messages(plain)), isOther) {
		out.add("event", shared, "All streams received the same events with these names.")
	}
	return out, count
}

// sharedNames returns the names of the events that streams receive after their start.
func (f *findings) sharedNames() (names []string) {
	for _, u := range units(f.messages(plain)) {
		if name := u.EventName(); !slices.Contains(names, name) && len(name) <= maxQuoted && f.isSteady(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isSteady reports whether an event with the name arrived later than Pace after the start of its stream.
func (f *findings) isSteady(name string) bool {
	return slices.ContainsFunc(f.messages(plain), func(messages series) bool {
		return slices.ContainsFunc(messages.units, func(u *unit) bool {
			return u.EventName() == name && u.at.Sub(messages.track.headersAt) > f.session.Pace
		})
	})
}

// hasGreetings reports whether all streams with messages received events of a common name that is not in names.
func (f *findings) hasGreetings(names []string) bool {
	all := slices.DeleteFunc(f.messages(plain, fresh), func(messages series) bool { return len(messages.units) == 0 })
	return slices.ContainsFunc(units(all), func(greeting *unit) bool {
		name := greeting.EventName()
		isMissing := func(messages series) bool {
			return !slices.ContainsFunc(messages.units, func(u *unit) bool { return u.EventName() == name })
		}
		return !slices.Contains(names, name) && !slices.ContainsFunc(all, isMissing)
	})
}

// sharedSources returns the parts of a message that may be the same for all streams: the data, a part of it, or the id.
func (f *findings) sharedSources() []string {
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

type arrival struct {
	fingerprint uint64
	at          time.Time
}

// countShared returns the result of countCommon for the messages with a name (empty: all messages). It returns 0 if one
// of them does not have the source. It uses the plain streams with messages, except the disconnected one.
func (f *findings) countShared(source, name string) int {
	s := compile(anyURL, object{{name: "same", value: source}})
	if s == nil {
		return 0
	}
	var all [][]arrival
	var from, to time.Time
	for _, messages := range f.messages(plain) {
		if messages.track == f.session.disconnected || len(messages.units) == 0 {
			continue
		}
		var list []arrival
		for _, u := range messages.units {
			if name != "" && u.EventName() != name {
				continue
			}
			reading := s.Reader("").Read(&u.Block)
			if reading.Kind != service.Delivery || reading.Err != nil {
				return 0
			}
			list = append(list, arrival{reading.Fingerprint, u.at})
		}
		all = append(all, list)
		if head := messages.track.headersAt.Add(f.session.Pace); from.IsZero() || head.After(from) {
			from = head
		}
		if end := messages.track.endedAt.Add(-f.session.Pace); to.IsZero() || end.Before(to) {
			to = end
		}
	}
	return countCommon(all, from, to)
}

// countCommon returns the number of messages between two times that all streams received in the same order. It returns
// 0 if the streams differ or there is only one. It also returns 0 if the messages cannot identify a loss: fewer than
// minShared are different, or over two thirds equal the previous one.
func countCommon(all [][]arrival, from, to time.Time) int {
	if len(all) < 2 {
		return 0
	}
	var first []uint64
	distinct, changes := map[uint64]bool{}, 0
	for _, m := range all[0] {
		if m.at.After(from) && m.at.Before(to) {
			if last := len(first) - 1; last < 0 || first[last] != m.fingerprint {
				changes++
			}
			first = append(first, m.fingerprint)
			distinct[m.fingerprint] = true
		}
	}
	if len(distinct) < minShared || 3*changes < len(first) {
		return 0
	}
	for _, other := range all[1:] {
		prints := make([]uint64, len(other))
		for i, m := range other {
			prints[i] = m.fingerprint
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

func (f *findings) sharedNotes(source string, count int) []string {
	notes := []string{fmt.Sprintf("All streams received %s with the same content in this part, in the same order. A run compares its clients with each other.", format.Count(count, "message"))}
	if source != "data" {
		notes = append(notes, "The rest of the data differed between streams.")
	}
	if n := f.countHistory(); n > 0 {
		notes = append(notes, fmt.Sprintf("A new stream began with %s that other streams had received earlier; a run does not expect such messages.", format.Count(n, "message")))
	}
	return notes
}

// countHistory counts the messages at the start of the new stream that other streams had received before its request.
func (f *findings) countHistory() (n int) {
	for _, late := range f.messages(fresh) {
		known := map[string]bool{}
		for _, messages := range f.messages(plain) {
			for _, u := range messages.units {
				if u.at.Before(late.track.requestedAt) {
					known[string(u.Data)] = true
				}
			}
		}
		for _, u := range late.units {
			if u.at.Sub(late.track.headersAt) < f.session.Pace && known[string(u.Data)] {
				n++
			}
		}
	}
	return n
}
