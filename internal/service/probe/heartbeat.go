package probe

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

type heartbeat struct {
	match   object // fields in the description, or nil if no heartbeat was observed
	notes   []string
	matches func(u *unit) bool // never nil
}

// A group is a set of similar blocks, which may be heartbeats.
type group struct {
	match     object
	name      string
	matches   func(u *unit) bool
	n         int // blocks after the start of a stream
	perStream int // maximum number of these blocks on one stream
	early     int // blocks at the start of a stream
	example   string
	empty     bool            // the blocks have no data
	isTypical bool            // the name or the data is typical of heartbeats
	payload   map[string]bool // data of the blocks
	silences  []time.Duration // before each block: since the previous block of any kind
	intervals []time.Duration // before each block: since the previous block of the group
	arrivals  []time.Duration // of each block, since the start of the probe
}

var (
	heartbeatName = regexp.MustCompile(`(?i)^(ping|pong|hb|noop|beat)$|keep.?alive|heart.?beat|ping$|^ping`)
	heartbeatData = regexp.MustCompile(`(?i)^(\{\}|\[\]|null|"?(ping|heart.?beat|keep.?alive|hb|noop)"?|\{"(type|event|kind)": ?"(ping|heart.?beat|keep.?alive)"\})?$`)
)

// groupOf returns the key and a new group for a unit that may be a heartbeat, or "" and nil for another unit.
func groupOf(u *unit) (key string, b *group) {
	switch {
	case u.isComment():
		return ":", &group{
			match: object{{name: "comment", value: true}}, name: "a comment", empty: true, isTypical: true,
			matches: func(o *unit) bool { return o.isComment() },
		}
	case len(u.Event) > maxQuoted: // too long for a description
		return "", nil
	case len(u.Event) > 0:
		name := string(u.Event)
		return "event " + name, &group{
			match: object{{name: "event", value: name}}, name: "the event " + quoteJS(excerpt(u.Event)), empty: !u.HasData, isTypical: heartbeatName.MatchString(name),
			matches: func(o *unit) bool { return string(o.Event) == name },
		}
	case u.HasData && !u.HasID && len(u.Data) <= maxQuoted:
		data := string(u.Data)
		return "data " + data, &group{
			match: object{{name: "data", value: data}}, name: "the data " + quoteJS(excerpt(u.Data)), isTypical: heartbeatData.MatchString(data),
			matches: func(o *unit) bool { return o.HasData && string(o.Data) == data },
		}
	}
	return "", nil
}

// groups returns groups of the blocks that the probe did not publish. The group with the most blocks after the start of
// a stream is first.
func (f *findings) groups() []*group {
	byKey := map[string]*group{}
	for _, t := range f.tracksOf(plain, resumed, fresh) {
		last, lastOf, counts := t.headersAt, map[string]time.Time{}, map[string]int{}
		for _, u := range f.units[t] {
			key, candidate := groupOf(u)
			if candidate != nil && !f.isFromProbe(u) {
				b := byKey[key]
				if b == nil {
					b = candidate
					b.payload, b.example = map[string]bool{}, u.example()
					byKey[key] = b
				}
				b.payload[string(u.Data)] = true
				if f.isAtStart(t, u) {
					b.early++
				} else {
					b.n++
					counts[key]++
					b.perStream = max(b.perStream, counts[key])
					if b.n == 1 { // a greeting is not an example of the counted blocks
						b.example = u.example()
					}
					since := lastOf[key]
					if since.IsZero() {
						since = t.headersAt
					}
					b.silences, b.intervals = append(b.silences, u.at.Sub(last)), append(b.intervals, u.at.Sub(since))
					b.arrivals = append(b.arrivals, u.at.Sub(f.session.started))
				}
				lastOf[key] = u.at
			}
			last = u.at
		}
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name))
	})
}

// isHeartbeat reports whether a group consists of heartbeats. Blocks that arrive only at the start of streams are not
// heartbeats. Among the others, blocks that are typical of heartbeats are. Blocks that always follow another one at
// once are not, such as an event that ends each message. The remaining blocks without data are heartbeats. If other
// blocks are messages, blocks with constant data at a constant interval are heartbeats, too. At least three must have
// arrived, two of them on one stream. A broadcast message also has constant data, but each stream receives it once.
func (b *group) isHeartbeat(hasMessages bool) bool {
	switch {
	case b.n == 0:
		return false
	case b.isTypical:
		return true
	case slices.Max(b.silences) < shortestInterval:
		return false
	case b.empty:
		return true
	}
	return hasMessages && len(b.payload) == 1 && b.n >= 3 && b.perStream >= 2 && ratio(b.intervals) < 1.3
}

func (f *findings) findHeartbeat() heartbeat {
	out := heartbeat{matches: func(*unit) bool { return false }}
	groups := f.groups()
	var found []*group
	for _, b := range groups {
		hasMessages := len(f.session.published) > 0 || slices.ContainsFunc(groups, func(o *group) bool { return o != b && !o.empty && !o.isTypical && o.n > 0 })
		if b.isHeartbeat(hasMessages) {
			found = append(found, b)
		}
	}
	silence := f.silence()
	if len(found) == 0 {
		f.missing = append(f.missing, fmt.Sprintf("heartbeat: none was received; the longest silence of a stream was %s. A longer interval needs a longer probe (--seconds).", formatSeconds(silence)))
		return out
	}
	b := found[0]
	delays, evidence := b.intervals, formatRange(slices.Min(b.intervals), slices.Max(b.intervals))
	if b.perStream == 1 {
		evidence = "after " + evidence
	} else {
		evidence += " apart"
	}
	if ratio(b.silences) < ratio(b.intervals) && slices.Max(b.silences) >= shortestInterval {
		delays, evidence = b.silences, fmt.Sprintf("after %s without other data", formatRange(slices.Min(b.silences), slices.Max(b.silences)))
	}
	out.match, out.matches = b.match, b.matches
	// If the service has one timer for all streams, the heartbeat arrives at one time, but after different intervals.
	if b.perStream == 1 && spread(delays) > spread(b.arrivals)+shortestInterval {
		f.missing = append(f.missing, "heartbeat.every: all streams received the same single heartbeat, so the interval is unknown. Probe for longer (--seconds).")
	} else {
		out.match.add("every", max(roundInterval(typicalInterval(delays)), 0.001)) // the minimum of heartbeat.every
	}
	out.notes = []string{fmt.Sprintf("Received %s: %s (%s), %s. The longest silence of a stream was %s.", times(b.n), b.name, b.example, evidence, formatSeconds(silence))}
	for _, o := range found[1:] {
		out.notes = append(out.notes, fmt.Sprintf("Also received %s: %s (%s). A description can have one heartbeat only.", times(o.n), o.name, o.example))
	}
	return out
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// typicalInterval returns the median of intervals, or the longest interval if that exceeds the median by over 30 %.
func typicalInterval(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	middle, longest := sorted[len(sorted)/2], sorted[len(sorted)-1]
	if float64(longest) > 1.3*float64(middle) {
		return longest
	}
	return middle
}

// ratio returns the longest duration divided by the shortest, or by 1 ms if that is longer. It returns +Inf for an
// empty list.
func ratio(d []time.Duration) float64 {
	if len(d) == 0 {
		return math.Inf(1)
	}
	return float64(slices.Max(d)) / math.Max(float64(slices.Min(d)), float64(time.Millisecond))
}

func spread(d []time.Duration) time.Duration { return slices.Max(d) - slices.Min(d) }

// roundInterval rounds an interval to the number of seconds that the service is probably configured with. It rounds an
// interval of at least 2 s to whole seconds, of at least 0.2 s to tenths, and so on. It rounds up if the interval
// exceeds the rounded value by over 3 %.
func roundInterval(d time.Duration) float64 {
	s := d.Seconds()
	unit := 1.0
	for s < 2*unit {
		unit /= 10
	}
	if n := math.Round(s / unit); s <= n*unit*1.03 {
		return trimFloat(n * unit)
	}
	return trimFloat(math.Ceil(s/unit) * unit)
}

func trimFloat(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// greetingGroups returns the groups whose blocks arrive only at the start of streams, on every stream that resumes no
// other.
func (f *findings) greetingGroups() []*group {
	streams := len(f.tracksOf(plain, fresh))
	return slices.DeleteFunc(f.groups(), func(b *group) bool { return b.n > 0 || b.early == 0 || b.early < streams })
}

// greetings names up to three greetings.
func (f *findings) greetings() string {
	var out []string
	for _, b := range f.greetingGroups() {
		out = append(out, fmt.Sprintf("%s (%s)", b.name, b.example))
	}
	return strings.Join(out[:min(len(out), 3)], " and ")
}
