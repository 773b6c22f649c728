package probe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/format"
)

// A message is the message field of a description. It has only the parts that were found.
type message struct {
	match object   // its fields
	seq   string   // place of the number, or "" if it was not found
	notes []string // evidence for the message as a whole
}

// A series is a list of blocks of one stream in the order of arrival.
type series struct {
	track *track
	units []*unit
}

func (s series) filter(keep func(u *unit) bool) series {
	return series{s.track, slices.DeleteFunc(slices.Clone(s.units), func(u *unit) bool { return !keep(u) })}
}

// named returns the blocks of each series that have the event name.
func named(all []series, name string) (out []series) {
	for _, messages := range all {
		out = append(out, messages.filter(func(u *unit) bool { return u.EventName() == name }))
	}
	return out
}

func (f *findings) messages(roles ...role) (out []series) {
	for _, t := range f.tracksOf(roles...) {
		out = append(out, series{t, f.units[t]}.filter(f.isMessage))
	}
	return out
}

// isMessage reports whether a unit is a message that the probe published. If the probe published none, all blocks with
// data count as messages, except heartbeats and the event before the second request.
func (f *findings) isMessage(u *unit) bool {
	if len(f.session.published) > 0 {
		return f.isFromProbe(u)
	}
	return u.HasData && !f.heartbeat.matches(u) && (f.session.firstEvent == "" || u.EventName() != f.session.firstEvent)
}

// others returns, for each plain stream, the blocks with data that arrived after its start and are neither heartbeats
// nor messages of the probe.
func (f *findings) others() (out []series) {
	for _, t := range f.tracksOf(plain) {
		out = append(out, series{t, f.units[t]}.filter(func(u *unit) bool {
			return u.HasData && !f.isFromProbe(u) && !f.heartbeat.matches(u) && !f.isAtStart(t, u)
		}))
	}
	return out
}

func units(all []series) (out []*unit) {
	for _, messages := range all {
		out = append(out, messages.units...)
	}
	return out
}

func (f *findings) findMessage() (m message) {
	m.match = object{}
	all := f.messages(plain, resumed, fresh)
	arrivals := units(all)
	if len(arrivals) == 0 {
		f.reportNoMessage()
		return m
	}
	ids := f.describeIDs(arrivals)
	if len(f.session.published) > 0 {
		all, arrivals = f.selectPublished(&m, all)
	} else {
		all, arrivals = f.selectMessages(&m, all)
	}
	m.notes = append(m.notes, fmt.Sprintf("%s arrived%s %s", format.Count(len(arrivals), "message"), format.Form(len(arrivals), ":", ", such as"), arrivals[len(arrivals)-1].example()), ids)
	if len(f.session.published) > 0 {
		if batch := f.findBatch(all); batch != nil {
			f.missing = append(f.missing, "message.seq: an event had several published messages, but a run reads one message per event: "+batch.example()+". Make the service send each message as an event.")
			return m
		}
		f.findPublished(&m, arrivals)
	} else {
		f.findCounter(&m, all, arrivals)
	}
	f.findOrder(&m, all)
	return m
}

func (f *findings) reportNoMessage() {
	if n := f.session.countConfirmed(); n > 0 {
		text := fmt.Sprintf("message: %s confirmed (%s), but did not arrive on any stream.", format.Plural(n, "published message was", "published messages were"), joinNumbers(f.session.statuses))
		if others := units(f.others()); len(others) > 0 {
			text += fmt.Sprintf(" Other events arrived, such as %s. If they are the messages, the service changes or omits the published text; put the placeholders into another field (--publish-body).", others[0].example())
		}
		f.missing = append(f.missing, fmt.Sprintf("%s Check that the URL and --publish-url name the same topic (--topic %s).", text, f.session.Topic))
		return
	}
	f.missing = append(f.missing,
		"message: none arrived. Publish some with --publish-url, or probe for longer (--seconds).")
}

// selectMessages returns the messages to describe, and adds their event name to m. It returns all messages if there is
// one name, or if a sequence of numbers spans all names. Otherwise, it returns the messages of the most frequent name
// that has a sequence, or all messages if no name has one.
func (f *findings) selectMessages(m *message, all []series) ([]series, []*unit) {
	names := map[string]int{}
	for _, u := range units(all) {
		names[u.EventName()]++
	}
	if len(names) == 1 {
		for name := range names {
			if name != "message" && len(name) <= maxQuoted {
				m.match.add("event", name, "All messages had this name.")
			}
		}
		return all, units(all)
	}
	order := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(names[b], names[a]), cmp.Compare(a, b))
	})
	var notes []string
	for _, name := range order[:min(len(order), 8)] {
		notes = append(notes, fmt.Sprintf("%s (%d)", quoteJS(excerpt(name)), names[name]))
	}
	note := "Names of the events: " + strings.Join(notes, ", ")
	if source, _ := f.findSequence(all); source != "" {
		m.notes = append(m.notes, note+".")
		return all, units(all)
	}
	for _, name := range order {
		if len(name) > maxQuoted {
			continue
		}
		selected := named(all, name)
		if source, _ := f.findSequence(selected); source != "" {
			m.match.add("event", name, note+". Messages with this name have numbers.")
			f.reportUnchecked(name, order)
			return selected, units(selected)
		}
	}
	m.notes = append(m.notes, note+".")
	return all, units(all)
}

// reportUnchecked names the events that arrive after the start of a stream, and are not messages with the checked name.
func (f *findings) reportUnchecked(checked string, names []string) {
	var unchecked []string
	for _, name := range names {
		if name != checked && f.isSteady(name) {
			unchecked = append(unchecked, quoteJS(excerpt(name)))
		}
	}
	if n := len(unchecked); n > 0 {
		f.missing = append(f.missing, fmt.Sprintf("message.event: a run checks only events with the name %s, because no sequence of numbers includes %s. If all clients receive the same events, message: { same: 'data' } checks events of all names.",
			quoteJS(checked), strings.Join(unchecked[:min(n, 8)], ", ")))
	}
}

// quote returns the beginning of text. It hides tokens first, because a shortened token would not be found.
func (s *session) quote(text string) string { return excerpt(s.requests.withoutTokens(text)) }

// findPublished finds the number, marker, time and checksum of the published messages, and adds their places to m.
func (f *findings) findPublished(m *message, arrivals []*unit) {
	options := sources(arrivals[0].Block)
	publications := map[int64]publication{}
	for _, p := range f.session.published {
		publications[p.seq] = p
	}
	for _, source := range append(slices.Clone(options), f.session.templateSources("seq")...) {
		if read := seqReader(source); read != nil && f.areNumbers(arrivals, read, publications) {
			m.seq = source
			m.match.add("seq", source, "In every message this is the published number.")
			break
		}
	}
	switch {
	case m.seq == "" && !utf8.Valid(arrivals[0].Data):
		f.missing = append(f.missing, "message.seq: the data of the events is not UTF-8, so a run would count each message as corrupted, such as "+arrivals[0].example()+". Make the service send UTF-8.")
	case m.seq == "":
		f.missing = append(f.missing, "message.seq: the number that was published was not found in the events, such as "+arrivals[0].example()+". Put {seq} into a field that the service passes on (--publish-body).")
	}
	if f.session.publishes("{run}") {
		all := append(slices.Clone(options), f.session.templateSources("run")...)
		parent := m.seq[:strings.LastIndexAny(m.seq, ".[")+1] // a quoted message may have the same marker
		siblings := slices.DeleteFunc(slices.Clone(all), func(option string) bool { return !strings.HasPrefix(option, parent) })
		all = append(siblings, all...)
		i := slices.IndexFunc(all, func(option string) bool {
			message := object{{name: "run", value: option}, {name: "every", value: 1}}
			return allDelivered(compile(anyURL, message), f.session.marker, arrivals)
		})
		if i >= 0 {
			m.match.add("run", all[i], "In every message this is the published marker.")
		} else {
			f.missing = append(f.missing, "message.run: the marker was in the events, but no expression finds it. The service may change the text around it, such as = to \\u003d; write run-{run}-seq-{seq}-t-{sentAt}-sum-{sum} (--publish-body).")
		}
	} else {
		f.missing = append(f.missing, "message.run: the published message has no {run}, so a run would count the messages of other publishers. Add {run} to --publish-body.")
	}
	f.findTime(m, arrivals, func(u *unit, at int64) bool {
		candidates := f.publishedIn(u)
		return len(candidates) > 0 && candidates[len(candidates)-1].sentAt == at
	})
	f.findSum(m, arrivals, options)
}

func (f *findings) findSum(m *message, arrivals []*unit, options []string) {
	if !f.session.publishes("{sum}") {
		return
	}
	publish, connect := field{name: "publish", value: f.session.requests.publish}, anyURL
	if f.session.publishes("{topic}") { // then connect must have it, too
		connect = object{{name: "url", value: "{base}/{topic}"}}
	}
	for _, option := range append(slices.Clone(options), f.session.templateSources("sum")...) {
		message := append(slices.Clone(m.match), field{name: "sum", value: option})
		if allDelivered(compile(connect, message, publish), f.session.marker, arrivals) {
			m.match.add("sum", option, "In every message this is the published checksum, and it is correct.")
			return
		}
	}
	f.missing = append(f.missing, "message.sum: the checksum that was published was not found in the events. Remove {sum} from --publish-body, or put it into a field that the service passes on.")
}

// areNumbers reports whether the values of a reader are at least two different published numbers. Each must have
// arrived after its publication. If the probe publishes a time, each must also be the number of the latest message in
// its block. A message may quote an earlier one.
func (f *findings) areNumbers(arrivals []*unit, read reader, publications map[int64]publication) bool {
	numbers := map[int64]bool{}
	for _, u := range arrivals {
		v, ok := read(&u.Block)
		p, published := publications[v]
		if !ok || !published || u.at.Before(p.at) {
			return false
		}
		if candidates := f.publishedIn(u); f.session.publishes("{sentAt}") && (len(candidates) == 0 || candidates[len(candidates)-1].seq != v) {
			return false
		}
		numbers[v] = true
	}
	return len(numbers) > 1
}

// findTime finds the place of the published time, or of another time near the time of arrival, and adds it to m.
// published reports whether a time is the published time of the latest message in a unit. It is nil if the probe
// published no messages.
func (f *findings) findTime(m *message, arrivals []*unit, published func(*unit, int64) bool) {
	const maxDistance = time.Minute
	best, coarse := "", ""
	options := sources(arrivals[0].Block)
	if published != nil {
		options = append(options, f.session.templateSources("sentAt")...)
	}
	for _, source := range options {
		read := timeReader(source)
		if read == nil {
			continue
		}
		values, isNear, isFine, isPublished := map[int64]bool{}, true, false, published != nil
		for _, u := range arrivals {
			v, ok := read(&u.Block)
			if !ok || u.at.Sub(time.UnixMicro(v)).Abs() > maxDistance {
				isNear = false
				break
			}
			values[v] = true
			isFine = isFine || v%1e6 != 0
			isPublished = isPublished && published(u, v)
		}
		switch {
		case !isNear || len(values) < 2:
		case isPublished && f.session.publishes("{sentAt}"):
			m.match.add("sentAt", source, "In every message this is the published time.")
			return
		case isFine && best == "":
			best = source
		case !isFine && coarse == "":
			coarse = source
		}
	}
	switch {
	case best != "":
		m.match.add("sentAt", best, "In each message this is a time within a minute of its arrival.")
	case coarse != "":
		f.missing = append(f.missing, fmt.Sprintf("message.sentAt: the time at %s is in whole seconds, which is too coarse to measure lateness.", quoteJS(coarse)))
	default:
		f.missing = append(f.missing, "message.sentAt: no time was found in the messages, so their lateness is unknown.")
	}
}

func (f *findings) describeIDs(arrivals []*unit) string {
	var ids []string
	distinct := map[string]bool{}
	for _, u := range arrivals {
		if u.HasID {
			ids = append(ids, string(u.ID))
			distinct[string(u.ID)] = true
		}
	}
	switch {
	case len(ids) == 0:
		return "The messages had no id."
	case len(distinct) <= len(f.session.tracks) && len(ids) > 2*len(distinct) && f.hasOneIDPerStream():
		return fmt.Sprintf("The id was the same in all messages of a stream (%s): no sequence.", excerpt(ids[0]))
	case len(ids) == 1:
		return fmt.Sprintf("One message had an id: %s.", excerpt(ids[0]))
	case uuid.MatchString(ids[0]):
		return fmt.Sprintf("The ids were random (%s): no sequence.", excerpt(ids[0]))
	}
	return fmt.Sprintf("Examples of ids: %s and %s.", excerpt(ids[0]), excerpt(ids[len(ids)-1]))
}

func (f *findings) hasOneIDPerStream() bool {
	for _, messages := range f.messages(plain) {
		for _, u := range messages.units {
			if string(u.ID) != string(messages.units[0].ID) {
				return false
			}
		}
	}
	return true
}
