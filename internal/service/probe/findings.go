package probe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
)

type findings struct {
	session *session
	units   map[*track][]*unit

	heartbeat heartbeat
	message   message
	resume    resume
	finite    *finiteResponses // nil: responses do not all end with a terminal event
	missing   []string         // sentences about fields of the description that were not found
}

func conclude(s *session) *findings {
	f := &findings{session: s, units: map[*track][]*unit{}}
	for _, t := range s.tracks {
		f.units[t] = t.units()
	}
	if f.finite = findFiniteResponses(s.tracks, s.disconnected); f.finite != nil {
		return f
	}
	f.heartbeat = f.findHeartbeat()
	f.message = f.findMessage()
	f.resume = f.findResume()
	return f
}

func (f *findings) tracksOf(roles ...role) (out []*track) {
	for _, t := range f.session.tracks {
		if t.open != nil && slices.Contains(roles, t.role) {
			out = append(out, t)
		}
	}
	return out
}

// isFromProbe reports whether a unit is a message that the probe published. It searches for the value of {run} or
// {sentAt}. If messages have neither, it searches for the number of a message that was published shortly before.
func (f *findings) isFromProbe(u *unit) bool {
	if len(f.session.published) == 0 || !u.HasData {
		return false
	}
	if f.session.publishes("{run}") {
		return bytes.Contains(u.text(), []byte(f.session.marker))
	}
	if f.session.publishes("{sentAt}") {
		return len(f.publishedIn(u)) > 0
	}
	return slices.ContainsFunc(f.session.published, func(p publication) bool {
		return u.at.Sub(p.at) >= 0 && u.at.Sub(p.at) < 2*f.session.Pace && bytes.Contains(u.text(), fmt.Append(nil, p.seq))
	})
}

func (u *unit) text() []byte {
	return bytes.Join([][]byte{u.Event, u.ID, u.Data, u.Comment}, []byte{0})
}

// publishedIn returns the publications whose time a unit contains, the latest last. It finds none if the probe
// publishes no {sentAt}.
func (f *findings) publishedIn(u *unit) []publication {
	if !f.session.publishes("{sentAt}") {
		return nil
	}
	text := u.text()
	return slices.DeleteFunc(slices.Clone(f.session.published), func(p publication) bool { return !bytes.Contains(text, fmt.Append(nil, p.sentAt)) })
}

func (s *session) publishes(placeholder string) bool {
	return s.requests.publish.contains(placeholder)
}

func (f *findings) isAtStart(t *track, u *unit) bool { return u.at.Sub(t.headersAt) < f.session.Pace }

// key identifies a message across streams. If the probe publishes, the key is only the data, because the ids of a
// message may differ between streams.
func (f *findings) key(u *unit) string {
	if len(f.session.published) > 0 {
		return string(u.Data)
	}
	return string(bytes.Join([][]byte{u.Event, u.ID, u.Data}, []byte{0}))
}

// silence returns the longest time in which nothing arrived on a plain stream.
func (f *findings) silence() (longest time.Duration) {
	for _, t := range f.tracksOf(plain) {
		last := t.headersAt
		for _, u := range f.units[t] {
			longest = max(longest, u.at.Sub(last))
			last = u.at
		}
		longest = max(longest, t.endedAt.Sub(last))
	}
	return longest
}

func excerpt[T string | []byte](text T) string { return format.Shorten(string(text), 80) }

func (u *unit) example() string {
	var parts []string
	if len(u.Event) > 0 {
		parts = append(parts, "event: "+excerpt(u.Event))
	}
	if u.HasID {
		parts = append(parts, "id: "+excerpt(u.ID))
	}
	if u.HasData {
		parts = append(parts, "data: "+excerpt(u.Data))
	}
	if u.HasComment {
		parts = append(parts, strings.TrimSpace(": "+excerpt(u.Comment)))
	}
	return strings.Join(parts, ", ")
}

func formatRange(least, most time.Duration) string {
	if formatSeconds(least) == formatSeconds(most) {
		return formatSeconds(least)
	}
	return formatSeconds(least) + " to " + formatSeconds(most)
}
