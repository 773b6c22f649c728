package probe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
)

// findings are the conclusions from the observed streams.
type findings struct {
	session *session
	units   map[*track][]unit

	heartbeat heartbeat
	message   message
	resume    resume
	finite    *finite  // nil: responses do not end by themselves
	missing   []string // sentences about fields that were not found
}

// conclude derives the findings of a session.
func conclude(s *session) *findings {
	f := &findings{session: s, units: map[*track][]unit{}}
	for _, t := range s.tracks {
		f.units[t] = t.units()
	}
	if f.finite = findFinite(s.tracks, s.disconnected); f.finite != nil {
		return f
	}
	f.heartbeat = f.findHeartbeat()
	f.message = f.findMessage()
	f.resume = f.findResume()
	return f
}

// opened returns the streams of some roles that were opened.
func (f *findings) opened(roles ...role) (out []*track) {
	for _, t := range f.session.tracks {
		if t.open != nil && slices.Contains(roles, t.role) {
			out = append(out, t)
		}
	}
	return out
}

// isFromProbe reports whether a unit is a message that the probe published.
func (f *findings) isFromProbe(u *unit) bool {
	if len(f.session.published) == 0 || !u.HasData {
		return false
	}
	all := bytes.Join([][]byte{u.Event, u.ID, u.Data, u.Comment}, []byte{0})
	if f.session.publishes("{run}") {
		return bytes.Contains(all, []byte(f.session.marker))
	}
	if f.session.publishes("{sentAt}") {
		return slices.ContainsFunc(f.session.published, func(p publication) bool { return bytes.Contains(all, fmt.Append(nil, p.sentAt)) })
	}
	return slices.ContainsFunc(f.session.published, func(p publication) bool {
		return u.at.Sub(p.at) >= 0 && u.at.Sub(p.at) < 2*f.session.Pace && bytes.Contains(all, fmt.Append(nil, p.seq))
	})
}

// publishes reports whether the probe's messages contain a placeholder.
func (s *session) publishes(placeholder string) bool {
	return s.requests.publish != nil && strings.Contains(string(toJSON(s.requests.publish)), placeholder)
}

// atStart reports whether a unit arrived at the start of a stream, like a greeting.
func (f *findings) atStart(t *track, u *unit) bool { return u.at.Sub(t.headersAt) < f.session.Pace }

// key identifies a message across streams. For messages of the probe it does not include the id, because ids may be per stream.
func (f *findings) key(u *unit) string {
	if len(f.session.published) > 0 {
		return string(u.Data)
	}
	return string(bytes.Join([][]byte{u.Event, u.ID, u.Data}, []byte{0}))
}

// silence returns the longest time in which nothing arrived on a stream that was observed from start to end.
func (f *findings) silence() (longest time.Duration) {
	for _, t := range f.opened(plain) {
		last := t.headersAt
		for _, u := range f.units[t] {
			longest = max(longest, u.at.Sub(last))
			last = u.at
		}
		longest = max(longest, t.endedAt.Sub(last))
	}
	return longest
}

// excerpt returns the beginning of data of the service.
func excerpt(text []byte) string { return format.Shorten(string(text), 80) }

// example returns a block as one line.
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

// formatRange formats a range of durations.
func formatRange(least, most time.Duration) string {
	if inSeconds(least) == inSeconds(most) {
		return inSeconds(least)
	}
	return inSeconds(least) + " to " + inSeconds(most)
}
