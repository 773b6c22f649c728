package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// facts is a table of names and values. A row without a name continues the previous row.
type facts Table

func (f *facts) add(name, value string, args ...any) {
	f.Rows = append(f.Rows, Cells(name, fmt.Sprintf(value, args...)))
}

func (f *facts) section(id, title string) Section {
	if len(f.Rows) == 0 {
		return Section{ID: id, Title: title}
	}
	return Section{ID: id, Title: title, Tables: []Table{Table(*f)}}
}

func figures(v *verdict.Verdict) Section {
	var out facts
	switch {
	case v.NoData:
		out.add("received", "not known, because no runner stored data")
		out.processes(v)
	case v.Layout.Declared:
		for _, f := range v.Facts {
			out.add(f.Name, "%s", f.Value)
		}
	default:
		out.connections(v)
		out.messages(v)
		out.latency(v)
		out.attempts(v)
		out.processes(v)
	}
	out.Rows = append(out.Rows, Facts("compressed", v.CompressionText(), "HTTP/2", v.HTTP2Text(), "control", v.Control.Line()).Rows...)
	out.system(&v.Resources)
	return out.section("figures", "")
}

// unobservedNote explains why unobserved clients lower the share of connected time.
func unobservedNote(c verdict.Connections) string {
	if c.Unobserved == 0 {
		return ""
	}
	return "; " + format.Form(c.Unobserved, "the unobserved client counts", "unobserved clients count") + " as not connected"
}

func (f *facts) connections(v *verdict.Verdict) {
	c := v.Connections
	text := fmt.Sprintf("%s opened, %s, %s refused, %s dropped",
		format.Thousands(c.Opened), c.EndText(), format.Thousands(c.Refused), format.Thousands(c.Dropped))
	if c.Unobserved > 0 {
		text += "; " + format.Count(c.Unobserved, "unobserved client") + " not counted"
	}
	f.add("streams", "%s", text)
	if h := v.OpenSeconds; h != nil && h.Planned > 0 {
		f.add("connected", "%s of the planned time%s", h.Percent(), unobservedNote(c))
	}
}

// plannedMessages returns the planned number of messages if the run did not pass and expected fewer; otherwise 0.
func plannedMessages(v *verdict.Verdict) uint64 {
	if n := v.Messages; v.Verdict == verdict.Pass || !v.Service.HasInterval() || n.Expected >= n.Floor {
		return 0
	}
	return v.Messages.Floor
}

func (f *facts) messages(v *verdict.Verdict) {
	m, nouns := v.Messages, v.Service.Noun()+"s"
	if v.Service.CountsMessages() {
		text := fmt.Sprintf("%s of %s received", format.Thousands(m.Received), format.Thousands(m.Expected))
		if planned := plannedMessages(v); planned > 0 {
			text += fmt.Sprintf(" (%s planned)", format.Thousands(planned))
		}
		for _, total := range m.Each() {
			if total.Fault {
				text += fmt.Sprintf(", %s %s", format.Thousands(total.Count), total.Name)
			}
		}
		if v.Service.CountBasis != shard.CountByNumber || v.LatencyMS != nil {
			text += fmt.Sprintf(", %s over %d ms late", format.Thousands(m.Late), v.Plan.LateMS)
		}
		f.add(nouns, "%s", text)
	} else {
		f.add(nouns, "not checked: the service description has message: 'unchecked'")
	}
	if events := otherEvents(m); len(events) > 0 {
		f.add("also received", "%s", strings.Join(events, ", "))
	}
	if p := m.Published; p != nil {
		f.add("published", "%s of %s planned; %s confirmed, %s refused, %s without a response; response time p50 %s, p99 %s; sent at most %s late",
			format.Thousands(p.Sent), format.Thousands(p.Planned), format.Thousands(p.Confirmed), format.Thousands(p.Refused), format.Thousands(p.Open),
			format.Milliseconds(p.ResponseMS.P50), format.Milliseconds(p.ResponseMS.P99), format.Milliseconds(p.MaxLagMS))
	}
}

// otherEvents lists the counts of events that do not count as received messages, such as heartbeats.
func otherEvents(m verdict.Messages) (out []string) {
	for _, n := range []struct {
		count            uint64
		singular, plural string
	}{
		{m.Heartbeats, "heartbeat", "heartbeats"},
		{m.Foreign, "message of another publisher", "messages of other publishers"},
		{m.Misrouted, "message of another topic", "messages of other topics"},
		{m.Repeated, "repeated message, which the service may send", "repeated messages, which the service may send"},
		{m.Announced, "gap that the service announced", "gaps that the service announced"},
		{m.Unchecked, "event that was not checked", "events that were not checked"},
		{m.Uncounted, "event that is neither a message nor a heartbeat", "events that are neither a message nor a heartbeat"},
	} {
		if n.count > 0 {
			out = append(out, format.Thousands(n.count)+" "+format.Form(n.count, n.singular, n.plural))
		}
	}
	return out
}

func quantiles(q verdict.Quantiles) string {
	return fmt.Sprintf("p50 %s, p95 %s, p99 %s, max %s", format.Milliseconds(q.P50), format.Milliseconds(q.P95), format.Milliseconds(q.P99), format.Milliseconds(q.Max))
}

func (f *facts) latency(v *verdict.Verdict) {
	switch {
	case v.Messages.Received == 0:
	case v.Service.HasInterval():
		f.add("lateness", "%s (gap before a %s minus the intervals that it spans)", quantiles(v.LatenessMS), v.Service.Noun())
	case v.Service.ComparesClients():
		f.add("spread between clients", "%s (for each message, from its first arrival at a runner to its arrival at each other client of that runner)", quantiles(v.LatenessMS))
	}
	switch {
	case v.LatencyMS != nil:
		f.add("latency", "%s (%s)", quantiles(v.LatencyMS.Quantiles), latencyBasis(v))
	case v.Service.CountBasis == shard.CountByNumber:
		f.add("latency", "not known: no message contained its publish time")
	}
	if q := v.Messages.LastSubscriberMS; q != nil {
		text := "%s, from publishing until the last stream received a message"
		if l := v.LatencyMS; l != nil && l.Above == verdict.AboveFastest {
			text += "; it may include a clock difference of up to 1 s"
		}
		f.add("last subscriber", text, quantiles(*q))
	}
}

// latencyBasis states between which times latency is measured, and whether one clock measured both.
func latencyBasis(v *verdict.Verdict) string {
	from := "from send time to receive time"
	if v.Messages.Published != nil {
		from = "from publishing to receiving"
	}
	if v.LatencyMS.Above == verdict.AboveSend {
		return from + ", on one clock"
	}
	return from + ", relative to the fastest message because the clocks of service and runner may differ"
}

func (f *facts) attempts(v *verdict.Verdict) {
	if v.Connections.Opened > 0 {
		f.add("connect", "%s", quantiles(v.ConnectMS))
	}
	if refused := refusals(v.RefusedAttempts); refused != "" {
		f.add("refused", "%s", refused)
	}
	if v.Reconnect != nil {
		f.add("reconnects", "%s; disconnected for %s", format.Thousands(v.Connections.Reconnected), quantiles(v.Reconnect.Quantiles))
	}
	if o := v.LongestOutage; o != nil && v.Plan.Reconnect {
		f.add("longest outage", "%s, %s from %s", format.Milliseconds(1000*o.Seconds), o.ID, format.UnixTime(o.Unix))
	}
}

func refusals(attempts map[string]int) string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(attempts)) {
		out = append(out, format.Count(attempts[reason], "attempt")+" ("+reason+")")
	}
	return strings.Join(out, ", ")
}

func (f *facts) processes(v *verdict.Verdict) {
	switch {
	case v.Server.Known && (v.Stopped() || v.NoData): // the counts of such a run are not compared
	case v.Server.Known:
		text := v.Server.Comparison(v.Messages.Received)
		if n := v.Connections.Unobserved; n > 0 {
			text = "excluding " + format.Count(n, "unobserved client") + ", " + text
		}
		f.add("server", "%s", text)
	case v.Evidence.Kind != "" && !v.NoData:
		f.add("judged by", "%s", v.Evidence.Text())
	}
	r := v.Resources
	if r.BackendRSSMax > 0 {
		f.add("backend", "%s of a core, at most %s", format.Percent(r.BackendCPUAverage), format.Bytes(r.BackendRSSMax))
	}
	if r.NginxRSSMax > 0 {
		f.add("nginx", "at most %s", format.Bytes(r.NginxRSSMax))
	}
	if r.RunnerRSSMax > 0 {
		scope := ""
		if slices.ContainsFunc(v.Runners, func(r verdict.Runner) bool { return r.RSSMax == 0 }) {
			scope = ", without the runners that stored no data"
		}
		f.add("runners", "%s of a core in total, at most %s each%s", format.Percent(r.RunnerCPUAverage), format.Bytes(r.RunnerRSSMax), scope)
	}
}

func (f *facts) system(r *verdict.Resources) {
	var threads []string
	for _, figure := range []struct {
		name    string
		maximum int
	}{{"the backend", r.BackendThreads}, {"nginx", r.NginxThreads}, {"the runners together", r.RunnerThreads}} {
		if figure.maximum > 0 {
			threads = append(threads, fmt.Sprintf("%d in %s", figure.maximum, figure.name))
		}
	}
	if len(threads) > 0 {
		f.add("threads", "at most %s", strings.Join(threads, ", "))
	}
	if r.Received+r.Transmitted > 0 {
		f.add("network", "%s received, %s sent by all programs on the host, loopback included", format.Bytes(r.Received), format.Bytes(r.Transmitted))
	}
	if r.Lookups > 0 {
		f.add("DNS", "%s of the target's name: p50 %s, max %s", format.Count(r.Lookups, "lookup"), format.Milliseconds(r.LookupP50), format.Milliseconds(r.LookupMax))
	}
}

// maxTopics is the maximum number of topics of a table in text and Markdown.
const maxTopics = 20

// topics returns the table of messages by topic. Faults other than missed messages have a column only if they occurred.
// ok is false if there is no topic, or if a publisher has more topics than limit.
func topics(v *verdict.Verdict, limit int) (t Table, ok bool) {
	p, list := v.Messages.Published, v.Messages.Topics
	if v.Service.ComparesClients() && len(list) > 0 {
		return comparedTopics(list), true
	}
	if p == nil || len(list) == 0 || p.Topics > limit {
		return t, false
	}
	t = Table{Caption: "Topics", Columns: Columns("topic", "#streams", "#published")}
	var kinds []int // indices of totals
	for i, total := range (ledger.Totals{}).Each() {
		occurs := func(t *verdict.Topic) bool { return t.Each()[i].Count > 0 }
		if total.Name == "late" && v.Service.CountBasis == shard.CountByNumber && v.LatencyMS == nil {
			continue // no message has a time
		}
		if !total.Fault || total.Name == "missed" || slices.ContainsFunc(list, occurs) {
			kinds, t.Columns = append(kinds, i), append(t.Columns, Columns("#"+total.Name)...)
		}
	}
	for _, topic := range list {
		row := Cells(topic.Name, format.Thousands(topic.Streams), format.Thousands(topic.Published))
		for _, i := range kinds {
			row = append(row, countCell(topic.Each()[i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, true
}

func comparedTopics(list []*verdict.Topic) Table {
	t := Table{Caption: "Topics", Note: "compared: messages that every connected client was expected to receive; fewest, most: all messages that one client received",
		Columns: Columns("topic", "#clients", "#compared", "#fewest", "#most", "#missed", "diverged", "from (UTC)")}
	for _, topic := range list {
		from := Cell{Text: "–"}
		if topic.DivergedUnix > 0 {
			from = Cell{Text: format.Clock(topic.DivergedUnix), At: topic.DivergedUnix}
		}
		row := Cells(cmp.Or(topic.Name, "(one)"), format.Thousands(topic.Streams), format.Thousands(topic.Messages), format.Thousands(topic.MinReceived), format.Thousands(topic.MaxReceived),
			format.Thousands(topic.Missed), cmp.Or(strings.Join(topic.Diverged, ", "), "none"))
		row[5].Tone = faultTone(topic.Missed)
		t.Rows = append(t.Rows, append(row, from))
	}
	return t
}

func countCell(t ledger.Total) Cell {
	c := Cell{Text: format.Thousands(t.Count)}
	if t.Fault {
		c.Tone = faultTone(t.Count)
	}
	return c
}

// faultTone returns the tone of a count that should be 0.
func faultTone(n uint64) Tone {
	if n == 0 {
		return ""
	}
	return Bad
}

func tableOf(t verdict.Table) Table {
	out := Table{Caption: t.Title, Note: t.Note, Columns: make([]Column, len(t.Columns))}
	for i, name := range t.Columns {
		out.Columns[i] = Column{Name: name, Number: t.Numeric(i)}
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, Cells(row...))
	}
	return out
}

func endTime(v *verdict.Verdict) string {
	if v.NoData {
		return ""
	}
	return format.UnixTime(v.EndedUnix)
}

func runDuration(v *verdict.Verdict) time.Duration {
	return time.Duration(max(v.EndedUnix-v.StartedUnix, 0) * float64(time.Second)).Round(time.Second)
}
