package probe

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"
)

// heartbeat is what keeps a stream alive.
type heartbeat struct {
	is     object // what the description says of it; nil: none was seen
	every  float64
	notes  []string
	claims func(u *unit) bool // never nil
}

// beats are blocks that look alike.
type beats struct {
	is      object
	what    string
	claims  func(u *unit) bool
	n       int
	early   int
	example string
	bare    bool            // without data
	named   bool            // by its name or its data
	payload map[string]bool // its data
	silent  []time.Duration // since anything came before each
	regular []time.Duration // since the one before each
}

var (
	nameOfBeat = regexp.MustCompile(`(?i)^(ping|pong|hb|noop|beat)$|keep.?alive|heart.?beat|ping$|^ping`)
	dataOfBeat = regexp.MustCompile(`(?i)^(\{\}|\[\]|null|"?(ping|heart.?beat|keep.?alive|hb|noop)"?|\{"(type|event|kind)": ?"(ping|heart.?beat|keep.?alive)"\})?$`)
)

// groupOf is the group that a unit may be a heartbeat with; "" where it is none.
func groupOf(u *unit) (key string, b *beats) {
	switch {
	case u.alone():
		return ":", &beats{
			is: object{{name: "comment", value: true}}, what: "a comment", bare: true, named: true,
			claims: func(o *unit) bool { return o.alone() },
		}
	case len(u.Event) > maxQuoted: // too long for a description
		return "", nil
	case len(u.Event) > 0:
		name := string(u.Event)
		return "event " + name, &beats{
			is: object{{name: "event", value: name}}, what: "the event " + quoteJS(show(u.Event)), bare: !u.HasData, named: nameOfBeat.MatchString(name),
			claims: func(o *unit) bool { return string(o.Event) == name },
		}
	case u.HasData && !u.HasID && len(u.Data) <= maxQuoted:
		data := string(u.Data)
		return "data " + data, &beats{
			is: object{{name: "data", value: data}}, what: "the data " + quoteJS(show(u.Data)), named: dataOfBeat.MatchString(data),
			claims: func(o *unit) bool { return o.HasData && string(o.Data) == data },
		}
	}
	return "", nil
}

// groups are the blocks that are not ours, by their likeness.
func (f *findings) groups() []*beats {
	byKey := map[string]*beats{}
	for _, t := range f.of(plain, resumed, fresh) {
		last, lastOf := t.head, map[string]time.Time{}
		for i := range f.units[t] {
			u := &f.units[t][i]
			key, made := groupOf(u)
			if made != nil && !f.ours(u) {
				b := byKey[key]
				if b == nil {
					b = made
					b.payload, b.example = map[string]bool{}, u.example()
					byKey[key] = b
				}
				b.payload[string(u.Data)] = true
				if f.early(t, u) {
					b.early++
				} else {
					b.n++
					since := lastOf[key]
					if since.IsZero() {
						since = t.head
					}
					b.silent, b.regular = append(b.silent, u.at.Sub(last)), append(b.regular, u.at.Sub(since))
				}
				lastOf[key] = u.at
			}
			last = u.at
		}
	}
	var out []*beats
	for _, b := range byKey {
		out = append(out, b)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].n > out[j].n || out[i].n == out[j].n && out[i].what < out[j].what })
	return out
}

// isBeat reports whether a group is of heartbeats: by its kind, or because it alone never changes while messages do.
func (b *beats) isBeat(others bool) bool {
	switch {
	case b.n == 0:
		return false
	case b.bare, b.named:
		return true
	}
	return others && len(b.payload) == 1 && b.n >= 3 && spread(b.regular) < 1.3
}

// findHeartbeat looks for what keeps streams alive.
func (f *findings) findHeartbeat() heartbeat {
	out := heartbeat{claims: func(*unit) bool { return false }}
	groups := f.groups()
	var found []*beats
	for _, b := range groups {
		others := len(f.s.published) > 0 || slices.ContainsFunc(groups, func(o *beats) bool { return o != b && !o.bare && !o.named && o.n > 0 })
		if b.isBeat(others) {
			found = append(found, b)
		}
	}
	silence := f.silence()
	if len(found) == 0 {
		f.missing = append(f.missing, fmt.Sprintf("heartbeat: none was seen, and the longest silence of a stream was %s. One that comes less often needs a longer probe (--seconds).", inSeconds(silence)))
		return out
	}
	b := found[0]
	after, how := b.regular, between(slices.Min(b.regular), slices.Max(b.regular))+" apart"
	if spread(b.silent) < spread(b.regular) {
		after, how = b.silent, fmt.Sprintf("after %s without anything else", between(slices.Min(b.silent), slices.Max(b.silent)))
	}
	out.is, out.claims, out.every = b.is, b.claims, rounded(usual(after))
	out.notes = []string{fmt.Sprintf("Seen %s: %s (%s), %s. The longest silence of a stream was %s.", times(b.n), b.what, b.example, how, inSeconds(silence))}
	for _, o := range found[1:] {
		out.notes = append(out.notes, fmt.Sprintf("Also seen, %s: %s (%s). A description has one heartbeat.", times(o.n), o.what, o.example))
	}
	return out
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// usual is the middle of some intervals, and the longest where they differ much.
func usual(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	middle, longest := sorted[len(sorted)/2], sorted[len(sorted)-1]
	if float64(longest) > 1.3*float64(middle) {
		return longest
	}
	return middle
}

// spread is how much longer the longest is than the shortest.
func spread(d []time.Duration) float64 {
	if len(d) == 0 {
		return math.Inf(1)
	}
	return float64(slices.Max(d)) / math.Max(float64(slices.Min(d)), float64(time.Millisecond))
}

// rounded is an interval in seconds as its author wrote it, most likely: whole from 2 s on, unless it is clearly above.
func rounded(d time.Duration) float64 {
	s := d.Seconds()
	unit := 1.0
	for s < 2*unit {
		unit /= 10
	}
	if n := math.Round(s / unit); s <= n*unit*1.03 {
		return tidy(n * unit)
	}
	return tidy(math.Ceil(s/unit) * unit)
}

// tidy takes away what floating point adds.
func tidy(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// greetings are the blocks that come at the start of streams and never again.
func (f *findings) greetings() string {
	var out []string
	for _, b := range f.groups() {
		if b.n == 0 && b.early > 0 {
			out = append(out, fmt.Sprintf("%s (%s)", b.what, b.example))
		}
	}
	return strings.Join(out[:min(len(out), 3)], " and ")
}
