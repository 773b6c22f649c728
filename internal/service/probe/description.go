package probe

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// description puts the findings together.
func (f *findings) description() (o object) {
	s := f.s
	if f.finite != nil {
		o, f.missing = f.finite.description(s, f.connectNotes())
		return o
	}
	o.add("name", s.asked.name)
	if s.asked.token {
		o.add("token", function("() => __ENV.SUBSCRIBE_TOKEN || ''"))
	}
	o.add("connect", s.asked.withThen(s.event, s.client, f.thenNotes()...), f.connectNotes()...)
	if f.heartbeat.is != nil {
		o.add("heartbeat", append(slices.Clone(f.heartbeat.is), field{name: "every", value: f.heartbeat.every}), f.heartbeat.notes...)
	}
	o.add("message", f.message.is, f.message.notes...)
	f.addEnd(&o)
	if len(f.resume.is) > 0 {
		o.add("resume", f.resume.is, f.resume.notes...)
	}
	if s.asked.publish == nil {
		return f.checked(o, f.message.is)
	}
	with := slices.Clone(o)
	with.add("publish", f.publishing(), fmt.Sprintf("%s were confirmed with %s, one every %s; the first before there was a stream.", format.Count(s.confirmed(), "message"), list(s.statuses), inSeconds(s.Pace)))
	_, err := service.Parse(asJSON(with))
	if err == nil {
		return with
	}
	f.missing = append(f.missing, "publish is left out of the description: "+strings.ReplaceAll(err.Error(), "\n", "; ")+".")
	return f.checked(o, slices.DeleteFunc(slices.Clone(f.message.is), func(m field) bool { return m.name == "sum" })) // it is of publish
}

// checked returns the description with that message, with the one by which clients are compared with each other, or with
// message: 'unchecked' if nothing was found by which messages can be checked. What was seen of them is then in its notes.
func (f *findings) checked(o object, is object) object {
	if slices.ContainsFunc(is, func(m field) bool { return m.name == "seq" || m.name == "every" }) {
		return withMessage(o, is)
	}
	if same := f.findSame(is); same != nil {
		return withMessage(o, same)
	}
	o = withMessage(o, "unchecked")
	for i := range o {
		if o[i].name != "message" {
			continue
		}
		for _, seen := range is {
			o[i].notes = append(o[i].notes, fmt.Sprintf("%s was %s. %s", seen.name, inline(seen.value), strings.Join(seen.notes, " ")))
		}
	}
	f.missing = append(f.missing, "message is 'unchecked': neither number nor interval was found, and streams did not receive the same messages, so a run checks connections and no message. "+
		"With --publish-url and --publish-body the probe finds them in messages that it publishes.")
	return o
}

// withMessage returns the description with another message.
func withMessage(o object, value any) object {
	o = slices.Clone(o)
	for i := range o {
		if o[i].name == "message" {
			o[i].value = value
		}
	}
	return o
}

// publishing is the request that publishes, with the statuses that were seen where they are not the usual ones.
func (f *findings) publishing() object {
	out := slices.Clone(f.s.asked.publish)
	usual := []int{200, 201, 202, 204}
	if slices.ContainsFunc(f.s.statuses, func(status int) bool { return !slices.Contains(usual, status) }) {
		var ok []any
		for _, status := range f.s.statuses {
			ok = append(ok, float64(status))
		}
		out.add("ok", ok)
	}
	return out
}

func (f *findings) connectNotes() (out []string) {
	var heads []time.Duration
	answers := map[string]int{}
	for _, t := range f.s.tracks {
		if t.role == plain {
			if t.err != nil {
				answers[t.err.Error()]++
				continue
			}
			heads = append(heads, t.head.Sub(t.asked))
			answers[fmt.Sprintf("%d %s", t.status, http.Header(t.header).Get("Content-Type"))]++
		}
	}
	var said []string
	for what, n := range answers {
		said = append(said, fmt.Sprintf("%s (%s)", f.s.quote(what), times(n)))
	}
	slices.Sort(said)
	note := "Answered " + strings.Join(said, ", ")
	if len(heads) > 0 {
		note += fmt.Sprintf("; headers after %.0f ms at most", math.Ceil(float64(slices.Max(heads))/float64(time.Millisecond)))
	}
	out = append(out, note+".")
	for _, t := range f.of(plain) {
		if packed := t.open.Packed(); packed != "" {
			f.s.notes = append(f.s.notes, fmt.Sprintf("The streams came compressed (%s), though nothing asked for it: a soak refuses them. Set ACCEPT_ENCODING, or have the service or its proxy send them as they are.", f.s.quote(packed)))
			break
		}
	}
	if to := f.origin(); to != "" {
		f.s.notes = append(f.s.notes, fmt.Sprintf("The streams were redirected to another origin, %s, which got none of the headers: give that as the URL, or soak with --follow-redirects.", to))
	}
	if f.finite != nil {
		return out
	}
	if hello := f.greetings(); hello != "" {
		out = append(out, "Each stream begins with "+hello+".")
	}
	return append(out, f.compression()...)
}

// origin is where redirects led the streams, "" if they stayed at the origin that was asked.
func (f *findings) origin() string {
	asked, _ := url.Parse(f.s.asked.base)
	for _, t := range f.of(plain) {
		if origin := t.open.Origin(); origin != sseclient.Origin(asked) {
			return origin
		}
	}
	return ""
}

func (f *findings) thenNotes() []string {
	if f.s.asked.then == nil {
		return nil
	}
	note := fmt.Sprintf("The first event of each stream was %s", quoteJS(stringShort(f.s.event)))
	if f.s.client != "" {
		note += ", and what is there at " + quoteJS(f.s.client) + " was another one on each"
	}
	return []string{fmt.Sprintf("%s. Answered %d.", note, f.s.thenStatus)}
}

// leastLifetime is how long a stream lives that is one.
const leastLifetime = 100 * time.Millisecond

// addEnd adds which side ends a stream.
func (f *findings) addEnd(o *object) {
	var ended []time.Duration
	longest, how := time.Duration(0), ""
	for _, t := range f.of(plain, resumed) {
		if t.ended != nil && !t.ours {
			ended = append(ended, t.lasted())
			if !errors.Is(t.ended, io.EOF) {
				how = " One of them: " + stream.EndInWords(t.ended) + "."
			}
		} else {
			longest = max(longest, t.lasted())
		}
	}
	if len(ended) == 0 {
		f.missing = append(f.missing, fmt.Sprintf("end: no stream ended by itself within %s. If the service ends them after a while, write end: { by: 'server', lifetime: SECONDS }.", inSeconds(longest)))
		return
	}
	least, most := slices.Min(ended), slices.Max(ended)
	note := fmt.Sprintf("%s ended that the probe had not closed, after %s.%s", format.Count(len(ended), "stream"), between(least, most), how)
	if most < leastLifetime {
		f.missing = append(f.missing, fmt.Sprintf("end: %s That is no lifetime: there is nothing to hold.", note))
		return
	}
	if float64(longest) > 1.5*float64(most) {
		f.missing = append(f.missing, fmt.Sprintf("end: %s Others were open for %s, so that is no lifetime.", note, inSeconds(longest)))
		return
	}
	// A few streams do not show the whole range.
	low, high := math.Max(0.001, floorTo(least*9/10)), ceilTo(max(most, longest)*11/10)
	o.add("end", object{{name: "by", value: "server"}, {name: "lifetime", value: []any{low, high}}}, note+" A tenth was added to both ends.")
}

// floorTo and ceilTo round a lifetime to whole seconds, a short one to tenths.
func floorTo(d time.Duration) float64 {
	unit := unitOf(d)
	return tidy(math.Floor(d.Seconds()/unit+0.02) * unit)
}

func ceilTo(d time.Duration) float64 {
	unit := unitOf(d)
	return tidy(math.Ceil(d.Seconds()/unit-0.02) * unit)
}

func unitOf(d time.Duration) float64 {
	if d < 10*time.Second {
		return 0.1
	}
	return 1
}

// head is what stands above the description.
func (f *findings) head() []string {
	s := f.s
	out := []string{fmt.Sprintf("Written by `soak probe` on %s: it looked at %s for %s with %s at a time.",
		s.began.UTC().Format("2006-01-02"), s.asked.base, inSeconds(time.Since(s.began)), format.Count(s.Streams, "stream"))}
	if s.asked.names("{topic}") {
		out = append(out, fmt.Sprintf("{topic} was %s.", quoteJS(stringShort(s.Topic))))
	}
	out = append(out, s.notes...)
	if len(f.missing) > 0 {
		out = append(out, "What it could not find out:")
		for _, sentence := range f.missing {
			out = append(out, "- "+sentence)
		}
	}
	return out
}
