package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// The reasons of ended streams and failed attempts that have their own sentences or rules.
const (
	causeIdle     = "idle"            // the client closed the stream, because no byte had arrived within the idle timeout
	causeTimeout  = "connect_timeout" // the server did not answer an attempt to connect
	causeConflict = "status 409"      // the id already has a stream
)

// endings describes how streams ended, by reason; %s is "was" or "were".
var endings = map[string]string{
	causeIdle:   "went silent",
	"server":    "%s closed by the server",
	"truncated": "%s closed by the server in the middle of a response",
}

// endText describes the end of one or more streams. verb is "was" or "were".
func endText(reason, verb string) string {
	text, ok := endings[reason]
	if !ok {
		return fmt.Sprintf("%s disconnected (%s)", verb, reason)
	}
	return strings.Replace(text, "%s", verb, 1)
}

func (w Formatter) droppedText(r *shard.Connection, f ledger.Finding, clock string) string {
	reason, detail := r.Reason, ""
	if suffix, ok := strings.CutPrefix(f.Note, reason); ok && endings[reason] != "" {
		detail = suffix
	} else {
		reason = f.Note
	}
	noun := w.Service.Noun()
	after := "after " + format.Count(r.Arrived(), noun)
	if r.Arrived() == 0 {
		after = "before the first " + noun
	}
	text := fmt.Sprintf("%s %s %s%s", r.ID, endText(reason, "was"), after, detail)
	if reason == causeIdle {
		text += fmt.Sprintf("; closed by soak after %s without data", format.Duration((f.At - max(r.LastAt, r.OpenedAt)).Round(time.Millisecond)))
	}
	return text + ", at " + clock + disconnectedFor(r.Record, f)
}

// An end is the kind of end of a client's last stream.
type end int

const (
	otherEnd   end = iota // the stream was completed, dropped or refused
	endTimeout            // the server did not end the stream within END_TIMEOUT of the request
	endError              // the stream failed after the client had requested its end
	endStop               // the run was stopped, or the script closed the stream without a request to end it
)

func endOf(r *shard.Connection) end {
	isRequested := r.StreamTime > r.OpenTime // OpenTime ends at the request to end the stream
	switch {
	case r.State == ledger.Planned, r.State == ledger.Connecting, r.State == ledger.Open:
		return endStop
	case r.State != ledger.Unfinished:
		return otherEnd
	case r.Reason == ledger.ReasonClient && isRequested:
		return endTimeout
	case r.Reason == ledger.ReasonClient, r.Reason == ledger.ReasonInterrupted, r.Reason == "":
		return endStop
	}
	return endError
}

func (s *Streams) unfinishedText() (out []string) {
	count, errs := map[end]int{}, map[string]int{}
	for _, c := range s.Records() {
		e := endOf(c)
		if count[e]++; e == endError {
			errs[c.Reason]++
		}
	}
	if n := count[endTimeout]; n > 0 {
		out = append(out, fmt.Sprintf("the server did not end %s within %s of the request (END_TIMEOUT)", format.Count(n, "stream"), format.Duration(s.m.Plan.EndTimeout())))
	}
	if n := count[endError]; n > 0 {
		var reasons []string
		for _, reason := range slices.Sorted(maps.Keys(errs)) {
			reasons = append(reasons, fmt.Sprintf("%s (%s)", reason, times(errs[reason])))
		}
		out = append(out, fmt.Sprintf("%s with an error after the request to end: %s",
			format.Plural(n, "stream ended", "streams ended"), strings.Join(reasons, ", ")))
	}
	if n := count[endStop]; n > 0 {
		out = append(out, format.Plural(n, "stream was open when the run was stopped or the script closed it", "streams were open when the run was stopped or the script closed them"))
	}
	return out
}
