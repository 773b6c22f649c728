package verdict

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// maxLastOutageShare is the maximum share of clients with an outage at the end of a valid run. If a service ends each
// stream after 30 s, about 5 % of its clients are reconnecting at any time, because they wait 1.5 s on average.
const maxLastOutageShare = .1

// lastOutages counts the clients that received no message after their last outage. They were disconnected at the end of
// the run, or had reconnected so shortly before the end that no message was due.
type lastOutages struct {
	clients      int    // clients, except those disconnected as planned and not refused since
	unanswered   int    // clients whose last attempt to reconnect was unanswered for over a second
	total        int    // all of these clients, including those disconnected as planned
	undetectable uint64 // undetectable losses of all of these clients
	longest      ledger.Outage
}

// count adds a client with its number of undetectable losses, if the client received no message after its last outage.
// It ignores clients that other checks report as refused, dropped or unfinished.
func (l *lastOutages) count(c *shard.Connection, undetectable uint64) {
	o := c.LastOutage
	if o == nil || c.State != ledger.Completed || undetectable == 0 && !c.IsDisconnected() {
		return
	}
	l.total++
	l.undetectable += undetectable
	if o.To-o.From >= l.longest.To-l.longest.From {
		l.longest = *o
	}
	if !o.Planned || len(o.Refusals) > 0 {
		l.clients++
	}
	if c.IsDisconnected() && undetectable > 0 && c.Unanswered > streamMargin {
		l.unanswered++
	}
}

// isFew reports whether a correct service may have this many reconnecting clients at any time, none of them unanswered.
func (l *lastOutages) isFew(planned int) bool {
	return l.unanswered == 0 && l.clients <= max(int(maxLastOutageShare*float64(planned)), 1)
}

func (l *lastOutages) reasons() (out []string) {
	if l.unanswered > 0 {
		out = append(out, fmt.Sprintf("the service had left the reconnect attempts of %s unanswered for over %s when the run ended", format.Count(l.unanswered, "client"), format.Duration(streamMargin)))
	}
	if l.total > 0 {
		out = append(out, fmt.Sprintf("%s reconnecting when the run ended, or had just reconnected, after %s %s: messages of %s cannot be checked%s",
			format.Plural(l.total, "client was", "clients were"), format.Form(l.total, "an outage of", "outages of up to"), format.Duration(l.longest.To-l.longest.From),
			format.Form(l.total, "this outage", "these outages"), retryText(&l.longest)))
	}
	return out
}

// doubts returns the sentence that states why the reconnecting clients make the run invalid.
func (l *lastOutages) doubts(planned int, expected uint64) []string {
	out := l.reasons()
	if l.undetectable > expected {
		out[0] += fmt.Sprintf("; %s could not be checked, and %d could", format.Plural(l.undetectable, "message", "messages"), expected)
	} else if l.unanswered == 0 {
		out[0] += fmt.Sprintf("; the limit is %g %% of %s, not counting those whose stream the service had ended as planned; "+
			"repeat the run, and set end.lifetime in the description if the service limits the lifetime of streams",
			100*maxLastOutageShare, format.Plural(planned, "client", "clients"))
	}
	return out[:1]
}
