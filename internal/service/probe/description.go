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

// description combines the findings.
func (f *findings) description() (o object) {
	s := f.session
	if f.finite != nil {
		o, f.missing = f.finite.description(s, f.connectNotes())
		return o
	}
	o.add("name", s.requests.name)
	if s.requests.needsToken {
		o.add("token", function("() => __ENV.SUBSCRIBE_TOKEN || ''"))
	}
	o.add("connect", s.requests.connectWithSecond(s.firstEvent, s.clientSource, f.thenNotes()...), f.connectNotes()...)
	if f.heartbeat.match != nil {
		o.add("heartbeat", append(slices.Clone(f.heartbeat.match), field{name: "every", value: f.heartbeat.interval}), f.heartbeat.notes...)
	}
	o.add("message", f.message.match, f.message.notes...)
	f.addEnd(&o)
	if len(f.resume.fields) > 0 {
		o.add("resume", f.resume.fields, f.resume.notes...)
	}
	if s.requests.publish == nil {
		return f.withCheckedMessage(o, f.message.match)
	}
	with := slices.Clone(o)
	with.add("publish", f.publishRequest(), fmt.Sprintf("%s were confirmed with %s, one every %s; the first one before any stream was open.", format.Count(s.countConfirmed(), "message"), joinNumbers(s.statuses), inSeconds(s.Pace)))
	_, err := service.Parse(toJSON(with))
	if err == nil {
		return with
	}
	f.missing = append(f.missing, "publish is left out of the description: "+strings.ReplaceAll(err.Error(), "\n", "; ")+".")
	return f.withCheckedMessage(o, slices.DeleteFunc(slices.Clone(f.message.match), func(m field) bool { return m.name == "sum" })) // it is of publish
}

// withCheckedMessage returns the description with a message that can be checked: this one, or the one by which
// clients are compared with each other. It is message: 'unchecked' if there is neither; the notes then have the
// evidence.
func (f *findings) withCheckedMessage(o object, is object) object {
	if slices.ContainsFunc(is, func(m field) bool { return m.name == "seq" || m.name == "every" }) {
		return withMessage(o, is)
	}
	if same := f.findShared(is); same != nil {
		return withMessage(o, same)
	}
	o = withMessage(o, "unchecked")
	for i := range o {
		if o[i].name != "message" {
			continue
		}
		for _, seen := range is {
			o[i].notes = append(o[i].notes, fmt.Sprintf("%s was %s. %s", seen.name, literal(seen.value), strings.Join(seen.notes, " ")))
		}
	}
	f.missing = append(f.missing, "message is 'unchecked': neither number nor interval was found, and streams did not receive the same messages, so a run checks connections only. "+
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

// publishRequest returns the request that publishes, with the observed statuses unless all are the usual ones.
func (f *findings) publishRequest() object {
	out := slices.Clone(f.session.requests.publish)
	usual := []int{200, 201, 202, 204}
	if slices.ContainsFunc(f.session.statuses, func(status int) bool { return !slices.Contains(usual, status) }) {
		var ok []any
		for _, status := range f.session.statuses {
			ok = append(ok, float64(status))
		}
		out.add("ok", ok)
	}
	return out
}

func (f *findings) connectNotes() (out []string) {
	var heads []time.Duration
	answers := map[string]int{}
	for _, t := range f.session.tracks {
		if t.role == plain {
			if t.err != nil {
				answers[t.err.Error()]++
				continue
			}
			heads = append(heads, t.headersAt.Sub(t.requestedAt))
			answers[fmt.Sprintf("%d %s", t.status, http.Header(t.header).Get("Content-Type"))]++
		}
	}
	var notes []string
	for what, n := range answers {
		notes = append(notes, fmt.Sprintf("%s (%s)", f.session.quote(what), times(n)))
	}
	slices.Sort(notes)
	note := "Answered " + strings.Join(notes, ", ")
	if len(heads) > 0 {
		note += fmt.Sprintf("; headers after %.0f ms at most", math.Ceil(float64(slices.Max(heads))/float64(time.Millisecond)))
	}
	out = append(out, note+".")
	for _, t := range f.opened(plain) {
		if packed := t.open.Coding(); packed != "" {
			f.session.notes = append(f.session.notes, fmt.Sprintf("The streams were compressed (%s) without a request for it, and soak refuses such streams. Set ACCEPT_ENCODING, or turn compression off in the service or its proxy.", f.session.quote(packed)))
			break
		}
	}
	if to := f.origin(); to != "" {
		f.session.notes = append(f.session.notes, fmt.Sprintf("The streams were redirected to another origin, %s, which received none of the headers. Use that origin in the URL, or run soak with --follow-redirects.", to))
	}
	if f.finite != nil {
		return out
	}
	if hello := f.greetings(); hello != "" {
		out = append(out, "Each stream begins with "+hello+".")
	}
	return append(out, f.compression()...)
}

// origin returns the origin to which redirects led the streams; "" if they stayed at the requested one.
func (f *findings) origin() string {
	requested, _ := url.Parse(f.session.requests.base)
	for _, t := range f.opened(plain) {
		if origin := sseclient.Origin(t.open.URL); origin != sseclient.Origin(requested) {
			return origin
		}
	}
	return ""
}

func (f *findings) thenNotes() []string {
	if f.session.requests.then == nil {
		return nil
	}
	note := fmt.Sprintf("The first event of each stream was %s", quoteJS(excerptOf(f.session.firstEvent)))
	if f.session.clientSource != "" {
		note += "; its value at " + quoteJS(f.session.clientSource) + " differed on each stream"
	}
	return []string{fmt.Sprintf("%s. Answered %d.", note, f.session.thenStatus)}
}

// minLifetime is the shortest time that a stream must be open to have a lifetime.
const minLifetime = 100 * time.Millisecond

// addEnd adds which side ends a stream.
func (f *findings) addEnd(o *object) {
	var ended []time.Duration
	longest, how := time.Duration(0), ""
	for _, t := range f.opened(plain, resumed) {
		if t.ended != nil && !t.closedHere {
			ended = append(ended, t.lifetime())
			if !errors.Is(t.ended, io.EOF) {
				how = " One of them: " + stream.EndInWords(t.ended) + "."
			}
		} else {
			longest = max(longest, t.lifetime())
		}
	}
	if len(ended) == 0 {
		f.missing = append(f.missing, fmt.Sprintf("end: no stream ended by itself within %s. If the service ends them after a while, write end: { by: 'server', lifetime: SECONDS }.", inSeconds(longest)))
		return
	}
	least, most := slices.Min(ended), slices.Max(ended)
	note := fmt.Sprintf("%s ended without a request of the probe, after %s.%s", format.Count(len(ended), "stream"), formatRange(least, most), how)
	if most < minLifetime {
		f.missing = append(f.missing, fmt.Sprintf("end: %s That is not a lifetime, because no stream stays open.", note))
		return
	}
	if float64(longest) > 1.5*float64(most) {
		f.missing = append(f.missing, fmt.Sprintf("end: %s Others were open for %s, so that is not a lifetime.", note, inSeconds(longest)))
		return
	}
	// A few streams do not show the whole range.
	low, high := math.Max(0.001, floorTo(least*9/10)), ceilTo(max(most, longest)*11/10)
	o.add("end", object{{name: "by", value: "server"}, {name: "lifetime", value: []any{low, high}}}, note+" A tenth was added to both ends.")
}

// floorTo and ceilTo round a lifetime to whole seconds, a short one to tenths.
func floorTo(d time.Duration) float64 {
	unit := unitOf(d)
	return trimFloat(math.Floor(d.Seconds()/unit+0.02) * unit)
}

func ceilTo(d time.Duration) float64 {
	unit := unitOf(d)
	return trimFloat(math.Ceil(d.Seconds()/unit-0.02) * unit)
}

func unitOf(d time.Duration) float64 {
	if d < 10*time.Second {
		return 0.1
	}
	return 1
}

// header returns the comment at the top of the description.
func (f *findings) header() []string {
	s := f.session
	out := []string{fmt.Sprintf("Written by `soak probe` on %s: %s, for %s, with %s at a time.",
		s.started.UTC().Format("2006-01-02"), s.requests.base, inSeconds(time.Since(s.started)), format.Count(s.Streams, "stream"))}
	if s.requests.uses("{topic}") {
		out = append(out, fmt.Sprintf("{topic} was %s.", quoteJS(excerptOf(s.Topic))))
	}
	out = append(out, s.notes...)
	if len(f.missing) > 0 {
		out = append(out, "Not found:")
		for _, sentence := range f.missing {
			out = append(out, "- "+sentence)
		}
	}
	return out
}
