package probe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/service"
)

type resume struct {
	fields object
	notes  []string
}

// findResume compares a stream that resumed after a disconnect with a new stream that was opened at the same time.
func (f *findings) findResume() (r resume) {
	s := f.session
	reopened, control := f.first(resumed), f.first(fresh)
	withMethod := func(method string) resume { r.fields.add("by", method); return r }
	switch {
	case s.disconnected == nil || s.reopenedAt.IsZero():
		f.missing = append(f.missing, "resume: the probe ended before a stream was disconnected and reopened.")
		return r
	case s.disconnectedID == "":
		reason := "No event had an id before the disconnect"
		if slices.ContainsFunc(f.units[s.disconnected], func(u *unit) bool { return u.HasID }) {
			reason = "The last id before the disconnect was empty"
		}
		r.notes = append(r.notes, reason+", so there is nothing to resume from. If the service resumes by a URL parameter, write by: { query: 'NAME' }.")
		return withMethod("none")
	case reopened == nil:
		f.missing = append(f.missing, fmt.Sprintf("resume: the stream could not be reopened with Last-Event-ID: %s (%s).", s.quote(s.disconnectedID), f.refusal(resumed)))
		return r
	}
	missed := f.missedMessages()
	if len(missed) == 0 {
		f.missing = append(f.missing, "resume: no message was sent while a stream was disconnected, so it is unknown whether such messages are sent again.")
		r.notes = append(r.notes, fmt.Sprintf("Last-Event-ID: %s was sent; no message had been missed.", s.quote(s.disconnectedID)))
		return withMethod("header")
	}
	resent, unrequested, repeated := f.countResent(reopened, missed), f.countResent(control, missed), f.countRepeated(reopened)
	note := fmt.Sprintf("One stream was disconnected for %s, and reopened with Last-Event-ID: %s. It received %d of %s.",
		formatSeconds(s.reopenedAt.Sub(s.disconnectedAt)), s.quote(s.disconnectedID), resent, format.Count(len(missed), "missed message"))
	if unrequested > 0 {
		note += fmt.Sprintf(" A new stream without that header received %d of %d.", unrequested, len(missed))
	}
	if repeated > 0 {
		note += fmt.Sprintf(" %s from before the disconnect arrived again, which fails a run.", format.Count(repeated, "message"))
	}
	r.notes = append(r.notes, note)
	gap, gapNote := f.gap(resent < len(missed))
	if gapNote != "" {
		r.notes = append(r.notes, gapNote)
	}
	method := "header"
	if resent == 0 && gap == nil {
		method = "none"
	}
	withMethod(method)
	if gap != nil {
		r.fields.add("gap", gap)
	}
	return r
}

func (f *findings) first(role role) *track {
	for _, t := range f.tracksOf(role) {
		return t
	}
	return nil
}

func (f *findings) refusal(role role) string {
	for _, t := range f.session.tracks {
		switch {
		case t.role != role || t.open != nil:
		case t.err != nil:
			return t.err.Error()
		default:
			return strings.TrimSpace(http1.StatusText(t.status) + " " + t.refusal)
		}
	}
	return ""
}

// missedMessages returns the keys of the messages that arrived during the disconnect, on the stream that received the
// most.
func (f *findings) missedMessages() (out map[string]bool) {
	for _, t := range f.tracksOf(plain, compressed) {
		arrived := map[string]bool{}
		for _, u := range f.units[t] {
			if t != f.session.disconnected && f.isMessage(u) && u.at.After(f.session.disconnectedAt) && u.at.Before(f.session.reopenedAt) {
				arrived[f.key(u)] = true
			}
		}
		if len(arrived) > len(out) {
			out = arrived
		}
	}
	return out
}

// countResent counts the messages of a set that arrived on a new stream. If the probe did not publish them, it counts
// only those at the start. Later messages are new, but may have the same content if each stream has its own numbers.
func (f *findings) countResent(t *track, messages map[string]bool) int {
	arrived := map[string]bool{}
	if t != nil {
		for _, u := range f.units[t] {
			if messages[f.key(u)] && (len(f.session.published) > 0 || f.isAtStart(t, u)) {
				arrived[f.key(u)] = true
			}
		}
	}
	return len(arrived)
}

// countRepeated counts the messages that arrived before the disconnect and again at the start of the resumed stream. A
// greeting is not a message.
func (f *findings) countRepeated(reopened *track) (n int) {
	earlier, greetings := map[string]bool{}, f.greetingGroups()
	for _, u := range f.units[f.session.disconnected] {
		if f.isMessage(u) && !slices.ContainsFunc(greetings, func(b *group) bool { return b.matches(u) }) {
			earlier[f.key(u)] = true
		}
	}
	return f.countResent(reopened, earlier)
}

// gap finds how the service announces that it could not resume a stream. It searches a stream with an unknown event ID
// for a block or a header that new streams do not have. If messages were lost, it also searches the resumed stream.
func (f *findings) gap(lost bool) (match object, note string) {
	control, unknownID := f.first(fresh), f.first(unknown)
	if reason := f.refusal(unknown); unknownID == nil && reason != "" {
		note = "With an unknown id: " + reason + "."
	}
	if control == nil {
		return nil, note
	}
	requested := map[*track]string{unknownID: "an unknown id"}
	if lost {
		requested[f.first(resumed)] = "that id"
	}
	controlGroups := map[string]bool{}
	for _, u := range f.units[control] {
		key, _ := groupOf(u)
		controlGroups[key] = true
	}
	for _, t := range []*track{unknownID, f.first(resumed)} {
		id := requested[t]
		if t == nil || id == "" {
			continue
		}
		for name, values := range t.header {
			if lower := strings.ToLower(name); strings.Contains(lower, "last-event-id") && values[0] != t.sentID && http.Header(control.header).Get(name) != values[0] {
				if strings.EqualFold(name, "Last-Event-ID") {
					name = "Last-Event-ID"
				}
				header := name + ": " + values[0]
				note := fmt.Sprintf("With %s the response had the header %s", id, f.session.quote(header))
				if f.isID(values[0]) {
					return object{{name: "header", value: name + ": " + service.AnotherID}}, note + ", the id of an event other than the requested one."
				}
				return object{{name: "header", value: f.session.requests.withoutTokens(header)}}, note + "."
			}
		}
		for _, u := range f.units[t] {
			key, group := groupOf(u)
			if group != nil && f.isAtStart(t, u) && !controlGroups[key] && len(u.Event) > 0 && !f.isPublished(u) && !f.heartbeat.matches(u) {
				return group.match, fmt.Sprintf("With %s the stream began with %s.", id, u.example())
			}
		}
	}
	if unknownID != nil && note == "" {
		note = "A stream that requested an unknown id received no notice of missing messages."
	}
	return nil, note
}

// isID reports whether text is the id of an observed event, or contains a UUID.
func (f *findings) isID(text string) bool {
	for _, units := range f.units {
		if slices.ContainsFunc(units, func(u *unit) bool { return u.HasID && string(u.ID) == text }) {
			return true
		}
	}
	return uuid.MatchString(text)
}

// isPublished reports whether a block is a published message. If the probe published none, it reports whether a message
// has the same event name.
func (f *findings) isPublished(u *unit) bool {
	if len(f.session.published) > 0 {
		return f.isFromProbe(u)
	}
	return slices.ContainsFunc(units(f.messages(plain)), func(message *unit) bool { return message.EventName() == u.EventName() })
}
