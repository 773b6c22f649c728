package probe

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
)

// A resume is how a stream resumes after a disconnect.
type resume struct {
	fields object
	notes  []string
}

// findResume compares a stream that resumed after a disconnect with one that was opened at the same time.
func (f *findings) findResume() (r resume) {
	s := f.session
	again, control := f.first(resumed), f.first(fresh)
	by := func(how string) resume { r.fields.add("by", how); return r }
	switch {
	case s.disconnected == nil || s.reopenedAt.IsZero():
		f.missing = append(f.missing, "resume: the probe ended before a stream was disconnected and reopened.")
		return r
	case s.disconnectedID == "":
		r.notes = append(r.notes, "No event had an id before the disconnect, so there is nothing to resume from. If the service resumes by a URL parameter, write by: { query: 'NAME' }.")
		return by("none")
	case again == nil:
		f.missing = append(f.missing, fmt.Sprintf("resume: the stream could not be reopened with Last-Event-ID: %s (%s).", s.quote(s.disconnectedID), f.refusal(resumed)))
		return r
	}
	missed := f.missed()
	if len(missed) == 0 {
		f.missing = append(f.missing, "resume: no message was sent while a stream was disconnected, so it is unknown whether such messages are sent again.")
		r.notes = append(r.notes, fmt.Sprintf("Last-Event-ID: %s was sent; no message had been missed.", s.quote(s.disconnectedID)))
		return by("header")
	}
	came, others, old := f.countAtStart(again, missed), f.countAtStart(control, missed), f.countRepeated(again)
	what := fmt.Sprintf("One stream was disconnected for %s, missed %s, and was reopened with Last-Event-ID: %s.", inSeconds(s.reopenedAt.Sub(s.disconnectedAt)), format.Count(len(missed), "message"), s.quote(s.disconnectedID))
	switch {
	case came == len(missed):
		what += " All of them were sent again."
	case came > 0:
		what += fmt.Sprintf(" %d of them were sent again.", came)
	default:
		what += " None of them was sent again."
	}
	if others > 0 {
		what += fmt.Sprintf(" A new stream without that header also received %d of them.", others)
	}
	if old > 0 {
		what += fmt.Sprintf(" %s from before the disconnect arrived again, which fails a run.", format.Count(old, "message"))
	}
	r.notes = append(r.notes, what)
	gap, note := f.gap(came < len(missed))
	if note != "" {
		r.notes = append(r.notes, note)
	}
	how := "header"
	if came == 0 && gap == nil {
		how = "none"
	}
	by(how)
	if gap != nil {
		r.fields.add("gap", gap)
	}
	return r
}

// first returns the first opened stream of a role; nil if there is none.
func (f *findings) first(role role) *track {
	for _, t := range f.opened(role) {
		return t
	}
	return nil
}

// refusal returns why no stream of a role was opened.
func (f *findings) refusal(role role) string {
	for _, t := range f.session.tracks {
		switch {
		case t.role != role || t.open != nil:
		case t.err != nil:
			return t.err.Error()
		default:
			return strings.TrimSpace(fmt.Sprintf("%d %s %s", t.status, http.StatusText(t.status), t.refusal))
		}
	}
	return ""
}

// missed returns the messages that arrived during the disconnect on the connected stream that received the most.
func (f *findings) missed() (out map[string]bool) {
	for _, t := range f.opened(plain, compressed) {
		came := map[string]bool{}
		for i := range f.units[t] {
			u := &f.units[t][i]
			if t != f.session.disconnected && f.isMessage(u) && u.at.After(f.session.disconnectedAt) && u.at.Before(f.session.reopenedAt) {
				came[f.key(u)] = true
			}
		}
		if len(came) > len(out) {
			out = came
		}
	}
	return out
}

// countAtStart counts the messages of a set that arrived at the start of a stream. Later ones are new, though they
// may look the same if each stream has its own numbers.
func (f *findings) countAtStart(t *track, messages map[string]bool) int {
	came := map[string]bool{}
	if t != nil {
		for i := range f.units[t] {
			if u := &f.units[t][i]; messages[f.key(u)] && f.atStart(t, u) {
				came[f.key(u)] = true
			}
		}
	}
	return len(came)
}

// countRepeated counts the messages that arrived before the disconnect, and again on the resumed stream.
func (f *findings) countRepeated(stream *track) (n int) {
	old := map[string]bool{}
	for i := range f.units[f.session.disconnected] {
		if u := &f.units[f.session.disconnected][i]; f.isMessage(u) {
			old[f.key(u)] = true
		}
	}
	return f.countAtStart(stream, old)
}

// gap finds how the service announces that it could not resume: a block or a header that streams with an unknown
// event ID have, and new streams do not. lost reports messages that were missed without an announcement.
func (f *findings) gap(lost bool) (is object, note string) {
	control, unknownID := f.first(fresh), f.first(unknown)
	requested := map[*track]string{}
	if unknownID != nil {
		requested[unknownID] = "an unknown id"
	} else if why := f.refusal(unknown); why != "" {
		note = "With an unknown id: " + why + "."
	}
	if again := f.first(resumed); lost && again != nil {
		requested[again] = "that id"
	}
	if control == nil {
		return nil, note
	}
	usual := map[string]bool{}
	for i := range f.units[control] {
		key, _ := groupOf(&f.units[control][i])
		usual[key] = true
	}
	for _, t := range []*track{unknownID, f.first(resumed)} {
		how := requested[t]
		if how == "" {
			continue
		}
		for name, values := range t.header {
			if lower := strings.ToLower(name); strings.Contains(lower, "last-event-id") && values[0] != t.sentID && http.Header(control.header).Get(name) != values[0] {
				if strings.EqualFold(name, "Last-Event-ID") {
					name = "Last-Event-ID"
				}
				header := name + ": " + values[0]
				note := fmt.Sprintf("With %s the response had the header %s", how, f.session.quote(header))
				if f.isID(values[0]) {
					return object{{name: "header", value: name + ": " + service.AnotherID}}, note + ", the id of another event than the requested one."
				}
				return object{{name: "header", value: f.session.requests.withoutTokens(header)}}, note + "."
			}
		}
		for i := range f.units[t] {
			u := &f.units[t][i]
			key, group := groupOf(u)
			if group != nil && f.atStart(t, u) && !usual[key] && len(u.Event) > 0 && !f.isPublished(u) && !f.heartbeat.matches(u) {
				return group.match, fmt.Sprintf("With %s the stream began with %s.", how, u.example())
			}
		}
	}
	if unknownID != nil && note == "" {
		note = "A stream with an unknown id received no notice of it."
	}
	return nil, note
}

// isID reports whether a text is the id of an event.
func (f *findings) isID(text string) bool {
	for _, all := range f.units {
		for i := range all {
			if all[i].HasID && string(all[i].ID) == text {
				return true
			}
		}
	}
	return uuid.MatchString(text)
}

// isPublished reports whether a block is a message: a published one, or one with an event name of messages.
func (f *findings) isPublished(u *unit) bool {
	if len(f.session.published) > 0 {
		return f.published(u)
	}
	for _, one := range f.messages(plain) {
		for _, o := range one.units {
			if o.EventName() == u.EventName() {
				return true
			}
		}
	}
	return false
}
