package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// target is what was soaked, and where it runs.
func target(v *verdict.Verdict) string {
	if v.Plan.Service != "" {
		return v.Plan.ServiceName() + " at " + v.Plan.BackendURL + v.Redirected()
	}
	return v.Plan.BackendURL + v.Redirected()
}

// messages adds the counts of messages, and of what was published.
func (l *list) messages(v *verdict.Verdict) {
	m, nouns := v.Messages, v.Service.Noun()+"s"
	if !v.Service.Counted() {
		l.add(nouns, "not checked: the service description has message: 'unchecked'")
	} else {
		faults := faultsOf(m.Totals)
		l.add(nouns, "%s, %s,", received(v, m.Totals), strings.Join(faults[:2], ", "))
		l.add("", "%s%s", strings.Join(faults[2:], ", "), late(v))
	}
	if also := Beside(m); len(also) > 0 {
		l.add("besides", "%s", strings.Join(also, ", "))
	}
	if p := m.Published; p != nil {
		l.add("published", "%s of %s planned; %s confirmed, %s refused, %s without an answer;", format.Thousands(p.Sent), format.Thousands(p.Planned),
			format.Thousands(p.Confirmed), format.Thousands(p.Refused), format.Thousands(p.Open))
		l.add("", "answered after p50 %s  p99 %s, sent at most %s late", format.Milliseconds(p.AnswerMS.P50), format.Milliseconds(p.AnswerMS.P99), format.Milliseconds(p.MaxLagMS))
	}
	if v.Service.ByInterval() {
		l.add("lateness", "%s", quantiles(v.LatenessMS))
	}
	switch {
	case v.LatencyMS != nil:
		l.add("latency", "%s", quantiles(v.LatencyMS.Quantiles))
		l.add("", "%s", LatencyBasis(v))
	case v.Service.Counts == shard.CountsNumbers:
		l.add("latency", "not known: no message contained its publish time")
	}
	if q := m.LastSubscriberMS; q != nil {
		l.add("last stream", "%s", quantiles(*q))
		l.add("", "to get each message")
	}
}

// late says how many messages were late, where that can be known.
func late(v *verdict.Verdict) string {
	if v.Service.Counts == shard.CountsNumbers && v.LatencyMS == nil {
		return ""
	}
	return fmt.Sprintf(", %d over %d ms late", v.Messages.Late, v.Plan.LateMS)
}

func faultsOf(t ledger.Totals) (out []string) {
	for _, total := range t.Each() {
		if total.Fault {
			out = append(out, fmt.Sprintf("%d %s", total.Count, total.Name))
		}
	}
	return out
}

// Beside is what came that is none of the run's messages, and what the service said of them, in words.
func Beside(m verdict.Messages) (out []string) {
	for _, n := range []struct {
		count     uint64
		one, many string
	}{
		{m.Heartbeats, "heartbeat", "heartbeats"},
		{m.Foreign, "message of other publishers", "messages of other publishers"},
		{m.Strayed, "message of another topic", "messages of other topics"},
		{m.Repeated, "message again, which the service may send twice", "messages again, which the service may send twice"},
		{m.Announced, "gap that the service announced", "gaps that the service announced"},
		{m.Unchecked, "event that was not checked", "events that were not checked"},
		{m.Uncounted, "block that is neither message nor heartbeat", "blocks that are neither message nor heartbeat"},
	} {
		if n.count > 0 {
			out = append(out, format.Thousands(n.count)+" "+format.Form(int(min(n.count, 2)), n.one, n.many))
		}
	}
	return out
}

// LatencyBasis says from when to when latency is measured, and by which clocks.
func LatencyBasis(v *verdict.Verdict) string {
	from := "from the time in the message to its receipt"
	if v.Messages.Published != nil {
		from = "from publishing to receiving"
	}
	if v.LatencyMS.Above == verdict.AboveSend {
		return from + ", by one clock"
	}
	return from + ", above the fastest: the clocks may differ"
}

// mostTopics is how many topics a table has that people read whole.
const mostTopics = 20

// Topics is a table of what was published to each topic and what its streams got, where there are few of both. Faults
// that no topic has are no columns.
func Topics(v *verdict.Verdict, most int) (t verdict.Table, ok bool) {
	p, all := v.Messages.Published, v.Messages.Topics
	if p == nil || len(all) == 0 || p.Topics > most {
		return t, false
	}
	t = verdict.Table{Title: "Topics", Columns: []string{"topic", "streams", "published", "expected", "received"}}
	var kinds []int // of totals
	for i, fault := range (ledger.Totals{}).Each() {
		seen := fault.Name == "missed" || slices.ContainsFunc(all, func(t *verdict.Topic) bool { return t.Each()[i].Count > 0 })
		if fault.Fault && seen {
			kinds, t.Columns = append(kinds, i), append(t.Columns, fault.Name)
		}
	}
	for _, one := range all {
		row := []string{one.Name, format.Thousands(one.Streams), format.Thousands(one.Published), format.Thousands(one.Expected), format.Thousands(one.Received)}
		for _, i := range kinds {
			row = append(row, format.Thousands(one.Each()[i].Count))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, true
}

// tables are those of a text or Markdown report.
func tables(v *verdict.Verdict) []verdict.Table {
	if t, ok := Topics(v, mostTopics); ok {
		return append(slices.Clip(v.Tables), t)
	}
	return v.Tables
}
