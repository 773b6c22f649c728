package probe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// findings are what follows from what was seen.
type findings struct {
	s     *session
	units map[*track][]unit

	heartbeat heartbeat
	message   message
	resume    resume
	finite    *finite  // nil: responses do not end by themselves
	missing   []string // what could not be found out
}

// look draws the conclusions.
func look(s *session) *findings {
	f := &findings{s: s, units: map[*track][]unit{}}
	for _, t := range s.tracks {
		f.units[t] = t.units()
	}
	if f.finite = findFinite(s.tracks, s.cut); f.finite != nil {
		return f
	}
	f.heartbeat = f.findHeartbeat()
	f.message = f.findMessage()
	f.resume = f.findResume()
	return f
}

// of are the streams of some roles that were open.
func (f *findings) of(roles ...role) (out []*track) {
	for _, t := range f.s.tracks {
		if t.open != nil && slices.Contains(roles, t.role) {
			out = append(out, t)
		}
	}
	return out
}

// ours reports whether a unit is a message that the probe has published.
func (f *findings) ours(u *unit) bool {
	if len(f.s.published) == 0 || !u.HasData {
		return false
	}
	all := bytes.Join([][]byte{u.Event, u.ID, u.Data, u.Comment}, []byte{0})
	if f.s.sends("{run}") {
		return bytes.Contains(all, []byte(f.s.marker))
	}
	if f.s.sends("{sentAt}") {
		return slices.ContainsFunc(f.s.published, func(p sending) bool { return bytes.Contains(all, fmt.Append(nil, p.sentAt)) })
	}
	return slices.ContainsFunc(f.s.published, func(p sending) bool {
		return u.at.Sub(p.at) >= 0 && u.at.Sub(p.at) < 2*f.s.Pace && bytes.Contains(all, fmt.Append(nil, p.seq))
	})
}

// sends reports whether the probe's messages have that placeholder.
func (s *session) sends(placeholder string) bool {
	return s.asked.publish != nil && strings.Contains(string(asJSON(s.asked.publish)), placeholder)
}

// early reports whether a unit arrived when the stream was opened, like a greeting.
func (f *findings) early(t *track, u *unit) bool { return u.at.Sub(t.head) < f.s.Pace }

// key tells messages apart: the same one on two streams has one key. Ids may be the stream's.
func (f *findings) key(u *unit) string {
	if len(f.s.published) > 0 {
		return string(u.Data)
	}
	return string(bytes.Join([][]byte{u.Event, u.ID, u.Data}, []byte{0}))
}

// silence is the longest time in which nothing came on a stream that was looked at all the time.
func (f *findings) silence() (longest time.Duration) {
	for _, t := range f.of(plain) {
		last := t.head
		for _, u := range f.units[t] {
			longest = max(longest, u.at.Sub(last))
			last = u.at
		}
		longest = max(longest, t.endedAt.Sub(last))
	}
	return longest
}

// show quotes what a service sent.
func show(text []byte) string { return stream.Shorten(string(text), 80) }

// example is a block in one line.
func (u *unit) example() string {
	var parts []string
	if len(u.Event) > 0 {
		parts = append(parts, "event: "+show(u.Event))
	}
	if u.HasID {
		parts = append(parts, "id: "+show(u.ID))
	}
	if u.HasData {
		parts = append(parts, "data: "+show(u.Data))
	}
	if u.HasComment {
		parts = append(parts, strings.TrimSpace(": "+show(u.Comment)))
	}
	return strings.Join(parts, ", ")
}

// between writes a range of times.
func between(least, most time.Duration) string {
	if inSeconds(least) == inSeconds(most) {
		return inSeconds(least)
	}
	return inSeconds(least) + " to " + inSeconds(most)
}
