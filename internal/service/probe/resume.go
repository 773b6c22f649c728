package probe

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
)

// A resume has the way in which a stream resumes after a disconnect.
type resume struct {
	is    object
	notes []string
}

// findResume compares the stream that went on behind a cut with one that was opened at the same time.
func (f *findings) findResume() (r resume) {
	s := f.s
	again, control := f.one(resumed), f.one(fresh)
	by := func(how string) resume { r.is.add("by", how); return r }
	switch {
	case s.cut == nil || s.reopened.IsZero():
		f.missing = append(f.missing, "resume: the probe was over before a stream was cut and opened again.")
		return r
	case s.cutID == "":
		r.notes = append(r.notes, "No event had an id before the disconnect, so there is nothing to resume from. If a parameter of the URL does it, write by: { query: 'NAME' }.")
		return by("none")
	case again == nil:
		f.missing = append(f.missing, fmt.Sprintf("resume: the stream could not be opened again with Last-Event-ID: %s (%s).", s.quote(s.cutID), f.refusal(resumed)))
		return r
	}
	missed := f.missed()
	if len(missed) == 0 {
		f.missing = append(f.missing, "resume: no message came while a stream was cut, so whether those come again is not known.")
		r.notes = append(r.notes, fmt.Sprintf("Last-Event-ID: %s was sent; nothing had been missed.", s.quote(s.cutID)))
		return by("header")
	}
	came, others, old := f.among(again, missed), f.among(control, missed), f.before(again)
	what := fmt.Sprintf("One stream was cut for %s, missed %s, and was opened with Last-Event-ID: %s.", inSeconds(s.reopened.Sub(s.cutAt)), format.Count(len(missed), "message"), s.quote(s.cutID))
	switch {
	case came == len(missed):
		what += " All of them came."
	case came > 0:
		what += fmt.Sprintf(" %d of them came.", came)
	default:
		what += " None of them came."
	}
	if others > 0 {
		what += fmt.Sprintf(" A new stream without that header got %d of them as well.", others)
	}
	if old > 0 {
		what += fmt.Sprintf(" %s from before the cut came again, which is a finding of a run.", format.Count(old, "message"))
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
		r.is.add("gap", gap)
	}
	return r
}

// one is the stream of a role, nil where it was not open.
func (f *findings) one(of role) *track {
	for _, t := range f.of(of) {
		return t
	}
	return nil
}

// refusal explains why the stream of a role was not open.
func (f *findings) refusal(of role) string {
	for _, t := range f.s.tracks {
		switch {
		case t.role != of || t.open != nil:
		case t.err != nil:
			return t.err.Error()
		default:
			return strings.TrimSpace(fmt.Sprintf("%d %s %s", t.status, http.StatusText(t.status), t.refusal))
		}
	}
	return ""
}

// missed are the messages that came while one stream was cut, on that of the others that got the most.
func (f *findings) missed() (out map[string]bool) {
	for _, t := range f.of(plain, compressed) {
		came := map[string]bool{}
		for i := range f.units[t] {
			u := &f.units[t][i]
			if t != f.s.cut && f.isMessage(u) && u.at.After(f.s.cutAt) && u.at.Before(f.s.reopened) {
				came[f.key(u)] = true
			}
		}
		if len(came) > len(out) {
			out = came
		}
	}
	return out
}

// among counts those of some messages that came at the start of a stream: later ones are new, though they may look
// like those, where each stream has its own numbers.
func (f *findings) among(t *track, messages map[string]bool) int {
	came := map[string]bool{}
	if t != nil {
		for i := range f.units[t] {
			if u := &f.units[t][i]; messages[f.key(u)] && f.early(t, u) {
				came[f.key(u)] = true
			}
		}
	}
	return len(came)
}

// before counts the messages that came before the cut, and again on the stream that went on.
func (f *findings) before(again *track) (n int) {
	old := map[string]bool{}
	for i := range f.units[f.s.cut] {
		if u := &f.units[f.s.cut][i]; f.isMessage(u) {
			old[f.key(u)] = true
		}
	}
	return f.among(again, old)
}

// gap finds how the service announces that it could not resume: a block or a header that streams with an unknown
// event ID have, and new streams do not. lost reports messages that were missed without an announcement.
func (f *findings) gap(lost bool) (is object, note string) {
	control, odd := f.one(fresh), f.one(unknown)
	asked := map[*track]string{}
	if odd != nil {
		asked[odd] = "an id that never was"
	} else if why := f.refusal(unknown); why != "" {
		note = "With an id that never was: " + why + "."
	}
	if again := f.one(resumed); lost && again != nil {
		asked[again] = "that id"
	}
	if control == nil {
		return nil, note
	}
	usual := map[string]bool{}
	for i := range f.units[control] {
		key, _ := groupOf(&f.units[control][i])
		usual[key] = true
	}
	for _, t := range []*track{odd, f.one(resumed)} {
		how := asked[t]
		if how == "" {
			continue
		}
		for name, values := range t.header {
			if lower := strings.ToLower(name); strings.Contains(lower, "last-event-id") && values[0] != t.lastID && http.Header(control.header).Get(name) != values[0] {
				if strings.EqualFold(name, "Last-Event-ID") {
					name = "Last-Event-ID"
				}
				header := name + ": " + values[0]
				note := fmt.Sprintf("With %s the answer had the header %s", how, f.s.quote(header))
				if f.isID(values[0]) {
					return object{{name: "header", value: name + ": " + service.AnotherID}}, note + ", which is of an event: another one than was asked for."
				}
				return object{{name: "header", value: f.s.asked.withoutTokens(header)}}, note + "."
			}
		}
		for i := range f.units[t] {
			u := &f.units[t][i]
			key, group := groupOf(u)
			if group != nil && f.early(t, u) && !usual[key] && len(u.Event) > 0 && !f.isPublished(u) && !f.heartbeat.claims(u) {
				return group.is, fmt.Sprintf("With %s the stream began with %s.", how, u.example())
			}
		}
	}
	if odd != nil && note == "" {
		note = "With an id that never was, a stream said nothing of it."
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

// isPublished reports whether a block is a message: ours, or one with an event name of messages.
func (f *findings) isPublished(u *unit) bool {
	if len(f.s.published) > 0 {
		return f.ours(u)
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
