package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// minOpenShare is the minimum share of the planned time for which a client must have a stream. With a smaller share,
// most of the run was not observed, so the absence of faults proves little.
const minOpenShare = .5

// An OpenTime has the planned time, the time for which streams were open, and the causes of the difference.
type OpenTime struct {
	OpenSeconds *OpenSeconds `json:"open_seconds,omitempty"`
	// LongestOutage is the longest time that a client was without a stream, including the time of its first connect.
	LongestOutage *Outage `json:"longest_outage,omitempty"`
	// RefusedAttempts counts the failed attempts to connect by reason, such as "status 503" or "connect_timeout". It
	// includes attempts of clients that connected later.
	RefusedAttempts map[string]int `json:"refused_attempts,omitempty"`
}

// OpenSeconds is the time for which streams were open, in seconds. A stream is open from its response headers to the
// request to end it, but for at most the planned time.
type OpenSeconds struct {
	Planned float64 `json:"planned"`
	Open    float64 `json:"open"`
	Share   float64 `json:"share"`
}

// Percent formats the share. It rounds down, so that an incomplete share does not show as 100 %.
func (o OpenSeconds) Percent() string { return fmt.Sprintf("%g %%", math.Floor(o.Share*10000)/100) }

// An Outage is a time in which a client had no stream.
type Outage struct {
	ID      string  `json:"id"`
	Unix    float64 `json:"unix_s"`
	Seconds float64 `json:"seconds"`
}

// openTimeOf returns the part of the planned time in which the client had a stream.
func (s *Streams) openTimeOf(r *shard.Connection) time.Duration {
	open := r.OpenTime
	if s.endedEarly(r) { // OpenTime lacks the stream that was open at the last checkpoint
		watched := s.watchedOf(r, true)
		for _, o := range r.Outages {
			watched -= o.To - o.From
		}
		open = max(open, watched)
	}
	return min(open, s.m.Plan.Hold())
}

// sumOpenTime sets OpenTime and Reconnect. It warns of ledger entries that are ignored because their id was in use.
func (s *Streams) sumOpenTime() {
	var open time.Duration
	outages := shard.NewHistogram() // listed outages; the count and the maximum are of all outages
	var longest, longestReconnect time.Duration
	survived := 0
	var sharedIDs []string
	for _, c := range s.Records() {
		open += s.openTimeOf(c)
		for _, f := range c.Refusals {
			if s.RefusedAttempts == nil {
				s.RefusedAttempts = map[string]int{}
			}
			s.RefusedAttempts[f.Reason] += f.Count
		}
		for _, o := range c.Outages {
			outages.Record(o.To - o.From)
		}
		survived += max(c.Survived, len(c.Outages))
		longestReconnect = max(longestReconnect, c.MaxOutage)
		if s.server != nil && c.Streams > 0 && idInUse(c) {
			sharedIDs = append(sharedIDs, c.ID)
		}
		if o := c.Longest; o.To-o.From > longest {
			longest = o.To - o.From
			s.LongestOutage = &Outage{ID: c.ID, Unix: format.Unix(s.m.Runners[c.Runner].At(o.From)), Seconds: longest.Seconds()}
		}
	}
	if len(sharedIDs) > 0 {
		text := "the server's ledger lists streams of another client under " + format.Form(len(sharedIDs), "the id ", "the ids ") + sharedIDs[0]
		if n := len(sharedIDs) - 1; n > 0 {
			text += fmt.Sprintf(" and %s more", format.Thousands(n))
		}
		s.Warnings = append(s.Warnings, text+format.Form(len(sharedIDs), ": this entry is ignored", ": these entries are ignored"))
	}
	if survived > 0 {
		s.Reconnect = &Reconnects{Quantiles: quantiles(outages), Count: survived}
		s.Reconnect.Max = max(s.Reconnect.Max, format.InMilliseconds(longestReconnect))
	}
	s.OpenSeconds = &OpenSeconds{Planned: s.m.Plan.Hold().Seconds() * float64(s.m.Plan.Connections), Open: open.Seconds()}
	if s.OpenSeconds.Planned > 0 {
		s.OpenSeconds.Share = s.OpenSeconds.Open / s.OpenSeconds.Planned
	}
}

// OpenTimeChecks returns the check of the connected time of the clients that were not refused, dropped or unfinished.
// If clients reconnect, it also returns the checks of outages, which include dropped and unfinished clients.
func (s *Streams) OpenTimeChecks() []Check {
	judged, lowest := 0, 1.0
	shortOpen := s.overruns(func(c *shard.Connection) (out excess) {
		if c.State != ledger.Completed || s.hasNoEvidence() {
			return out
		}
		judged++
		open, planned := s.openTimeOf(c), s.m.Plan.Hold()-s.m.Runners[c.Runner].StartDelay()
		lowest = min(lowest, float64(open)/float64(max(planned, 1)))
		limit := time.Duration(minOpenShare * float64(planned))
		if open >= limit {
			return out
		}
		return excess{limit - open, 0, c.ClosedAt, fmt.Sprintf("%s was connected for %s of the planned %s%s", c.ID, format.Duration(open), format.Duration(planned), refusals(", and was refused ", c.Refusals)+retryText(&c.Longest)), ledger.AreLocal(c.Refusals)}
	})
	open := shortOpen.check(Check{
		ID: CheckOpenTime, Name: "connected time", Limit: fmt.Sprintf("at least %g %% for each client with a stream open to the end", 100*minOpenShare), Actual: firstText(shortOpen.sentences, ""),
		Why: "messages cannot be checked while a client is disconnected",
	})
	switch {
	case judged == 0 && s.hasNoEvidence():
		open = open.NotJudged("nothing was received")
	case judged == 0:
		open = open.NotJudged("no stream stayed open to the end")
	case open.Pass:
		open.Actual = "at least " + OpenSeconds{Share: lowest}.Percent()
		if judged < s.Connections.Planned {
			open.Actual += fmt.Sprintf(" for %s of %s; %s", format.Thousands(judged),
				format.Count(s.Connections.Planned, "client"), format.Form(s.Connections.Planned-judged, "the other had no stream open to the end, or was not observed to the end",
					"the others had no stream open to the end, or were not observed to the end"))
		}
	}
	if !s.m.Plan.Reconnect {
		return []Check{open}
	}
	c := Check{ID: CheckOutage, Name: "longest outage of a client", Limit: NoLimit, Actual: "none", Why: "clients receive nothing during an outage"}
	if o := s.LongestOutage; o != nil {
		c.Actual = fmt.Sprintf("%s (%s)", format.Milliseconds(1000*o.Seconds), o.ID)
	}
	var longOutages overrun
	if limit, ok := s.m.Plan.MaxOutage(); ok {
		c.Limit = format.Duration(limit)
		longOutages = s.overruns(func(c *shard.Connection) (out excess) {
			if length := c.Longest.To - c.Longest.From; c.Streams > 0 && length > limit {
				out = excess{length - limit, c.Longest.From, c.Longest.To, s.outageSentence(c), ledger.AreLocal(c.Longest.Refusals)}
			}
			return out
		})
	}
	return []Check{open, longOutages.check(c).notJudgedIf(s.Connections.Opened == 0, reasonNoStream), s.reconnectCheck()}
}

// PassSentences returns sentences that state the results of a pass.
func (s *Streams) PassSentences() (out []string) {
	noun, n := s.m.Service.Noun(), s.Messages
	if s.Evidence.Kind == BySubscribers {
		out = append(out, "the loss of a message that reached no client cannot be detected")
	} else if s.Evidence.Kind == ByNumbers && !s.m.Service.HasInterval() {
		out = append(out, fmt.Sprintf("no %s is known to be missing; losses before the first and after the last one of a stream are undetectable", noun))
	} else if undetectable := s.Evidence.Undetectable; undetectable > 0 {
		out = append(out, fmt.Sprintf("no %s is known to be missing; up to %d of %d could be %s", noun, undetectable, n.Expected,
			format.Form(undetectable, "an undetectable loss", "undetectable losses")))
	}
	received := fmt.Sprintf("%s of %s received", format.Thousands(n.Received), format.Count(n.Expected, noun))
	if n := s.Messages.NotExpected; n > 0 {
		received += "; " + notExpectedText(n)
	}
	if !s.m.Service.CountsMessages() {
		m := s.Messages
		received = fmt.Sprintf("%s and %s received",
			format.Plural(m.Heartbeats, "heartbeat", "heartbeats"), format.Plural(m.Unchecked+m.Uncounted+m.Foreign, "event", "events"))
	}
	end := format.Count(s.Connections.OpenToEnd(), "stream") + " open to the end, "
	if n := s.Connections.Reconnecting; n > 0 {
		end += fmt.Sprintf("%d reconnecting, ", n)
	}
	out = append(out, end+s.interruptions()+received)
	if cut := s.cutSummary(); cut != "" {
		out = append(out, cut)
	}
	return out
}

// interruptions describes reconnects and refused attempts as the start of a clause; "" if nothing was interrupted or
// refused.
func (s *Streams) interruptions() (text string) {
	if n := s.Connections.Reconnected; n > 0 {
		text = format.Plural(n, "reconnect", "reconnects") + ", "
	}
	refused := 0
	for _, n := range s.RefusedAttempts {
		refused += n
	}
	if refused > 0 {
		text += format.Plural(refused, "refused attempt", "refused attempts") + ", "
	}
	if text == "" {
		return ""
	}
	return text + "open for " + s.OpenSeconds.Percent() + " of the planned time, "
}

// An overrun has sentences about the clients that were over a maximum or under a minimum, in descending order of
// the excess. Its explanations count the clients whose excess the load generator explains, by a delay or by a lack
// of ports, descriptors or IPv6 addresses.
type overrun struct {
	sentences []string
	allowed   int // number of such clients that the check allows
	explanations
}

// check returns the check that at most the allowed number of clients violate the limit.
func (o overrun) check(c Check) Check {
	c.Pass, c.Reasons, c.weight = len(o.sentences) <= o.allowed, o.sentences, provenFault
	c.faults = faults{longOutage, uint64(max(len(o.sentences)-o.allowed, 0))}
	return o.attribute(c)
}

// An excess is the time by which a client is over a maximum or under a minimum. Its length is 0 if the client
// is within the limit. A delay of the load generator between from and to may have caused the excess.
type excess struct {
	length   time.Duration
	from, to ledger.Instant
	sentence string
	isLocal  bool // the load generator had no port, descriptor or IPv6 address
}

// overruns returns the clients whose excess is positive.
func (s *Streams) overruns(excessOf func(*shard.Connection) excess) (out overrun) {
	var all []excess
	out.explanations = explanations{}
	for _, c := range s.Records() {
		e := excessOf(c)
		if e.length <= 0 {
			continue
		}
		all = append(all, e)
		if e.isLocal {
			out.add(SignalGenerator, longOutage, 1)
		} else if delay, signal := s.delayOf(c.Runner, e.from, e.to); delay >= e.length {
			out.add(signal, longOutage, 1)
		}
	}
	slices.SortStableFunc(all, func(a, b excess) int { return cmp.Compare(b.length, a.length) })
	for _, e := range all {
		out.sentences = append(out.sentences, e.sentence)
	}
	return out
}

func (s *Streams) outageSentence(c *shard.Connection) string {
	o, r := c.Longest, s.m.Runners[c.Runner]
	ending := "it reconnected"
	switch {
	case o.From >= c.ClosedAt:
		ending = "the run ended"
	case o.From < c.OpenedAt:
		ending = "its first stream opened"
	}
	return fmt.Sprintf("%s had no stream for %s, from %s until %s%s%s", c.ID, format.Duration(o.To-o.From),
		format.TimeOfDay(r.At(o.From)), ending, refusals("; meanwhile it was refused ", o.Refusals), cmp.Or(retryText(&o), lastRefusalText(o, ending)))
}

// retryText states the reconnection time that the service requested, if it explains at least half of an outage;
// otherwise "". A client waits for up to twice that time.
func retryText(o *ledger.Outage) string {
	if o == nil || o.Requested == 0 || 2*o.Requested < o.To-o.From {
		return ""
	}
	return fmt.Sprintf("; the service had requested a reconnection time of %s (retry)", format.Duration(o.Requested))
}

// lastRefusalText states when the last attempt of an outage was refused, and how much later the outage ended. ending
// describes that end, such as "it reconnected". In between, the client was waiting for its next attempt, so this time
// is not an outage of the service.
func lastRefusalText(o ledger.Outage, ending string) string {
	if len(o.Refusals) == 0 {
		return ""
	}
	last := o.From
	for _, r := range o.Refusals {
		last = max(last, r.Last)
	}
	return fmt.Sprintf("; the last refusal was %s after the start of the outage, and %s %s later", format.Duration(last-o.From), ending, format.Duration(o.To-last))
}

// refusals returns prefix, followed by the number of failed attempts for each reason; "" for an empty list.
func refusals(prefix string, list []ledger.Refusal) string {
	var all []string
	for _, f := range list {
		all = append(all, fmt.Sprintf("%s (%s)", times(f.Count), f.Reason))
	}
	if len(all) == 0 {
		return ""
	}
	return prefix + strings.Join(all, ", ")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
