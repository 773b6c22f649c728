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

// description returns the description of the service, and adds sentences about fields that were not found to f.missing.
func (f *findings) description() (o object) {
	s := f.session
	if f.finite != nil {
		o, f.missing = f.finite.description(s, f.connectNotes())
		return o
	}
	o = s.requests.start(s.requests.connectWithSecond(s.firstEvent, s.clientSource, f.thenNotes()...), f.connectNotes())
	if f.heartbeat.match != nil {
		o.add("heartbeat", f.heartbeat.match, f.heartbeat.notes...)
	}
	var rest object
	f.addEnd(&rest)
	if len(f.resume.fields) > 0 {
		rest.add("resume", f.resume.fields, f.resume.notes...)
	}
	if s.requests.publish == nil {
		return slices.Concat(o, object{f.checkedMessage()}, rest)
	}
	publishing := slices.Concat(o, object{{"message", f.message.match, f.message.notes}}, rest)
	publishing.add("publish", f.publishRequest(), fmt.Sprintf("%s confirmed with %s. The probe published one every %s, the first one before any stream was open.", format.Plural(s.countConfirmed(), "message was", "messages were"), joinNumbers(s.statuses), formatSeconds(s.Pace)))
	_, err := service.Parse(toJSON(publishing))
	if err == nil {
		return publishing
	}
	f.missing = append(f.missing, "publish is left out of the description: "+strings.ReplaceAll(err.Error(), "\n", "; ")+".")
	// Without publish, a run would receive no messages with these fields.
	return slices.Concat(o, object{f.uncheckedMessage("message is 'unchecked', so a run checks connections only. Correct the requests, and probe again.")}, rest)
}

// checkedMessage returns a message field that a run can check. This is the found message if that has a number or an
// interval, otherwise the result of findShared. Without either, it returns the result of uncheckedMessage.
func (f *findings) checkedMessage() field {
	found := f.message.match
	if slices.ContainsFunc(found, func(m field) bool { return m.name == "seq" || m.name == "every" }) {
		return field{"message", found, f.message.notes}
	}
	if same := f.findShared(found); same != nil {
		return field{"message", same, f.message.notes}
	}
	return f.uncheckedMessage("message is 'unchecked', so a run checks connections only. No number and no interval was found, and the streams had fewer than three different messages in common. " +
		"With --publish-url and --publish-body, the probe publishes messages and finds their numbers.")
}

// uncheckedMessage returns message: 'unchecked'. Its notes name the fields that were found. The reason is added to
// f.missing.
func (f *findings) uncheckedMessage(reason string) field {
	notes := f.message.notes
	for _, member := range f.message.match {
		notes = append(notes, fmt.Sprintf("%s was %s. %s", member.name, literal(member.value), strings.Join(member.notes, " ")))
	}
	f.missing = append(f.missing, reason)
	return field{"message", "unchecked", notes}
}

// publishRequest returns the publish request, with the observed statuses if one of them is not a default of publish.ok.
func (f *findings) publishRequest() object {
	out := slices.Clone(f.session.requests.publish)
	defaults := []int{200, 201, 202, 204}
	if slices.ContainsFunc(f.session.statuses, func(status int) bool { return !slices.Contains(defaults, status) }) {
		var ok []any
		for _, status := range f.session.statuses {
			ok = append(ok, float64(status))
		}
		out.add("ok", ok)
	}
	return out
}

// connectNotes returns the evidence for the request of a stream: responses, greetings and compression. Warnings about
// unrequested compression and about redirects become notes of the session.
func (f *findings) connectNotes() (out []string) {
	var heads []time.Duration
	answers := map[string]int{}
	for _, t := range f.session.tracks {
		if t.role == plain && !t.isStopped {
			if t.err != nil {
				answers[t.err.Error()]++
				continue
			}
			heads = append(heads, t.headersAt.Sub(t.requestedAt))
			answers[strings.TrimSpace(fmt.Sprintf("%d %s", t.status, http.Header(t.header).Get("Content-Type")))]++
		}
	}
	var notes []string
	for answer, n := range answers {
		notes = append(notes, fmt.Sprintf("%s (%s)", f.session.quote(answer), times(n)))
	}
	slices.Sort(notes)
	note := "Results of the requests: " + strings.Join(notes, ", ")
	if len(heads) > 0 {
		note += fmt.Sprintf("; headers after %.0f ms at most", math.Ceil(float64(slices.Max(heads))/float64(time.Millisecond)))
	}
	out = append(out, note+".")
	for _, t := range f.tracksOf(plain) {
		v := f.session.values(t.n)
		if coding := t.open.Coding(); coding != "" && !stream.Fill(&f.session.service.Connect, &v).Accepts(coding) {
			f.session.notes = append(f.session.notes, fmt.Sprintf("The streams were compressed (%s) although the request did not accept compression, and soak refuses such streams. Set ACCEPT_ENCODING, or turn off compression in the service or its proxy.", f.session.quote(coding)))
			break
		}
	}
	if origin := f.origin(); origin != "" {
		f.session.notes = append(f.session.notes, fmt.Sprintf("The streams were redirected to another origin, %s, which received none of the headers. Use that origin in the URL, or run soak with --follow-redirects.", origin))
	}
	if f.finite != nil {
		return out
	}
	if hello := f.greetings(); hello != "" {
		out = append(out, "Each stream begins with "+hello+".")
	}
	return append(out, f.compression()...)
}

// origin returns the origin to which the streams were redirected, or "" without a redirect to another origin.
func (f *findings) origin() string {
	requested, _ := url.Parse(f.session.requests.base)
	for _, t := range f.tracksOf(plain) {
		if origin := sseclient.Origin(t.open.URL); origin != sseclient.Origin(requested) {
			return origin
		}
	}
	return ""
}

func (f *findings) thenNotes() []string {
	if f.session.requests.secondRequest == nil {
		return nil
	}
	note := fmt.Sprintf("The first event of each stream was %s", quoteJS(excerpt(f.session.firstEvent)))
	if f.session.clientSource != "" {
		note += "; its value at " + quoteJS(f.session.clientSource) + " differed on each stream"
	}
	return []string{fmt.Sprintf("%s. The service answered the second request with %d.", note, f.session.secondStatus)}
}

const minLifetime = 100 * time.Millisecond

// addEnd adds end if the service ended streams, one of them after at least minLifetime, and no other stream stayed open
// for much longer. Otherwise, it adds the reason to f.missing.
func (f *findings) addEnd(o *object) {
	var lifetimes []time.Duration
	longest, reason := time.Duration(0), ""
	for _, t := range f.tracksOf(plain, resumed) {
		if t.ended != nil && !t.closedByProbe {
			lifetimes = append(lifetimes, t.lifetime())
			if !errors.Is(t.ended, io.EOF) {
				reason = " One of them: " + stream.EndInWords(t.ended) + "."
			}
		} else {
			longest = max(longest, t.lifetime())
		}
	}
	if len(lifetimes) == 0 {
		f.missing = append(f.missing, fmt.Sprintf("end: no stream ended by itself within %s. If the service ends streams after a longer time, write end: { by: 'server', lifetime: SECONDS }.", formatSeconds(longest)))
		return
	}
	least, most := slices.Min(lifetimes), slices.Max(lifetimes)
	note := fmt.Sprintf("%s ended without a request from the probe, after %s.%s", format.Count(len(lifetimes), "stream"), formatRange(least, most), reason)
	if most < minLifetime {
		f.missing = append(f.missing, fmt.Sprintf("end: %s That is not a lifetime, because no stream stays open.", note))
		return
	}
	if float64(longest) > 1.5*float64(most) {
		f.missing = append(f.missing, fmt.Sprintf("end: %s Another stream was open for %s, so that is not a lifetime.", note, formatSeconds(longest)))
		return
	}
	// The lifetimes of a few streams do not cover the whole range.
	low, high := math.Max(0.001, roundLifetime(least*9/10, math.Floor)), roundLifetime(max(most, longest)*11/10, math.Ceil)
	o.add("end", object{{name: "by", value: "server"}, {name: "lifetime", value: []any{low, high}}}, note+" The range was widened by a tenth at both ends.")
}

// roundLifetime rounds a lifetime up or down, to whole seconds, or to tenths of a second if it is below 10 s. It
// ignores a deviation of up to 2 % of that unit.
func roundLifetime(d time.Duration, round func(float64) float64) float64 {
	unit := 1.0
	if d < 10*time.Second {
		unit = 0.1
	}
	n := d.Seconds() / unit
	if nearest := math.Round(n); math.Abs(n-nearest) < 0.02 {
		return trimFloat(nearest * unit)
	}
	return trimFloat(round(n) * unit)
}

func (f *findings) header() []string {
	s := f.session
	out := []string{fmt.Sprintf("Written by soak on %s, after probing %s for %s with %s.",
		s.started.UTC().Format("2006-01-02"), s.requests.base, formatSeconds(time.Since(s.started)), format.Count(len(s.tracks), "stream"))}
	if s.requests.uses("{topic}") {
		out = append(out, fmt.Sprintf("{topic} was %s.", quoteJS(excerpt(s.Topic))))
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
