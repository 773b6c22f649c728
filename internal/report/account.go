package report

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// runnersOf returns the counts and costs of each runner; empty without data. It omits the counts of requests, responses
// and chunks.
func runnersOf(v *verdict.Verdict) Section {
	if v.NoData {
		return Section{}
	}
	t := Table{Columns: Columns("runner", "host", "state")}
	connections := 0
	for i := range v.Runners {
		connections += v.Runners[i].Connections
	}
	hasConnections := connections > 0 || !v.Layout.Declared
	if hasConnections {
		t.Columns = append(t.Columns, Columns("#clients")...)
	}
	hasLateness := v.Service.CountBasis != shard.CountByNumber || v.LatencyMS != nil // otherwise, no message has a time
	countsMessages := v.Evidence.Kind != "" && v.Service.CountsMessages() && v.Responses == nil
	if countsMessages {
		for _, n := range v.Messages.Each() {
			if n.Name != "late" || hasLateness {
				t.Columns = append(t.Columns, Columns("#"+n.Name)...)
			}
		}
	}
	if v.Server.Known {
		t.Columns = append(t.Columns, Columns("#server sent")...)
	}
	t.Columns = append(t.Columns, Columns("#memory", "#CPU time")...)
	add := func(row Row, count int, n ledger.Totals, sent uint64, costs ...string) {
		if hasConnections {
			row = append(row, Cell{Text: format.Thousands(count)})
		}
		for _, total := range n.Each() {
			if countsMessages && (total.Name != "late" || hasLateness) {
				row = append(row, countCell(total))
			}
		}
		if v.Server.Known {
			row = append(row, Cell{Text: serverSent(v.Server, n.Received, sent)})
		}
		t.Rows = append(t.Rows, append(row, Cells(costs...)...))
	}
	for i := range v.Runners {
		r := &v.Runners[i]
		row := Cells(fmt.Sprint(r.Index), r.Host, runnerState(r.State))
		if r.State != string(shard.Finished) {
			row[2].Tone = Doubt
		}
		add(row, r.Connections, r.Totals, r.ServerSent, format.Bytes(r.RSSMax), format.Duration(time.Duration(r.CPUSeconds*float64(time.Second))))
		if r.Connections == 0 && r.RSSMax == 0 && r.State != string(shard.Finished) {
			setUnknown(t.Rows[i][3:])
		}
	}
	if len(v.Runners) > 1 && (hasConnections || countsMessages || v.Server.Known) {
		add(Cells("all", "", ""), connections, v.Messages.Totals, v.Server.Sent)
	}
	out := Section{ID: "runners", Title: "Runners"}
	if len(t.Rows) > 0 {
		out.Tables = []Table{t}
	}
	return out
}

// setUnknown replaces the figures of a runner that stored none.
func setUnknown(cells []Cell) {
	for i := range cells {
		cells[i] = Cell{Text: "–"}
	}
}

// serverSent returns how many messages the server's ledger lists as sent; "–" if that number was not compared.
func serverSent(s verdict.Server, received, sent uint64) string {
	if s.Uncompared > 0 && received > 0 && sent == 0 {
		return "–"
	}
	return format.Thousands(sent)
}

// runnerState describes the state of a runner. A runner whose last shard is a checkpoint did not finish.
func runnerState(state string) string {
	if state == string(shard.Running) {
		return "did not finish"
	}
	return state
}

func (s *pageBuilder) account() Section {
	out := runnersOf(s.v)
	if s.v.NoData {
		return out
	}
	out.ID, out.Title, out.Short = "account", s.accountTitle(), s.nouns(true)
	s.messageBasis(&out)
	if t, ok := s.findings(); ok {
		out.Tables = append(out.Tables, t)
	}
	return out
}

func (s *pageBuilder) accountTitle() string {
	if !s.v.Service.CountsMessages() {
		return "Events received"
	}
	return s.nouns(true) + " and findings"
}

func (s *pageBuilder) findings() (t Table, ok bool) {
	const maxRows = 100
	n := len(s.v.Groups)
	t = Table{Caption: "Findings", Columns: Columns("when (UTC)", "kind", "#clients", "finding")}
	if n > maxRows {
		t.Caption = fmt.Sprintf("Findings: the first %d of %s; connections.csv lists the findings of each client", maxRows, format.Count(n, "group"))
	}
	for _, g := range s.v.Groups[:min(n, maxRows)] {
		t.Rows = append(t.Rows, Row{{Text: format.Clock(g.FirstUnix), At: g.FirstUnix}, {Text: s.kindText(ledger.Kind(g.Kind))}, {Text: format.Thousands(g.Connections)}, {Text: g.Text}})
	}
	return t, n > 0
}

// arithmetic returns the calculation of docs/accounting.md for a run whose messages are expected by interval.
func (s *pageBuilder) arithmetic() Section {
	if !s.v.Service.HasInterval() || s.v.NoData {
		return Section{}
	}
	p, n, nouns := s.v.Plan, s.v.Messages, s.nouns(false)
	perConnection := p.MinNoopsPerStream()
	product := uint64(max(perConnection*p.Connections, 0))
	duration := p.Hold().Seconds()
	t := Table{Columns: Columns("quantity", "calculation", "#this run")}
	add := func(name, method, value string) { t.Rows = append(t.Rows, Cells(name, method, value)) }
	add("time open", fmt.Sprintf("%d s, less %d s at the end", p.Seconds, p.Seconds-int(duration)), format.Milliseconds(1000*duration))
	add("planned "+nouns+" per stream, at least", fmt.Sprintf("floor(%.0f / %v)", duration, p.NoopInterval), format.Thousands(perConnection))
	add("planned "+nouns+" of all streams, at least", fmt.Sprintf("%s × %s", format.Thousands(p.Connections), format.Thousands(perConnection)), format.Thousands(product))
	add(nouns+" expected", "sum over the open time of the observed streams", format.Thousands(n.Expected))
	difference := clamp.Int(n.Expected) - clamp.Int(product)
	add("difference from the product", explain(difference, p.Connections), format.Change(float64(difference), ""))
	rate := float64(p.Connections) / p.NoopInterval
	add("rate", fmt.Sprintf("%s / %v s", format.Count(p.Connections, "stream"), p.NoopInterval), fmt.Sprintf("%.1f %s/s", rate, nouns))
	if data := s.v.Service.Data; data != "" {
		size := len("data: \n\n") + len(data)
		add("payload of the "+s.v.Service.Noun()+" without id and time", fmt.Sprintf("%d bytes (data: %s and two line endings) × received", size, data), format.MiB(float64(size)*float64(n.Received)/(1<<20)))
	}
	if s.v.Server.Known && s.Merged.Connections.Len() > 0 {
		size := eventSize(perConnection)
		add("events on the wire", fmt.Sprintf("%d bytes (noop %s with id, timestamp and chunk framing) × received", size, format.Thousands(perConnection)), format.MiB(float64(size)*float64(n.Received)/(1<<20)))
	}
	return Section{ID: "arithmetic", Title: "Arithmetic of expected " + nouns, Short: "Arithmetic", Tables: []Table{t}}
}

// explain states why the number of expected messages differs from streams × messages per stream.
func explain(difference, connections int) string {
	switch {
	case difference == 0:
		return "none"
	case difference > 0 && difference <= connections:
		return "one more message on some streams, because their open time is not a multiple of the interval"
	case difference > 0:
		return "streams were open longer than planned, or messages were sent more often"
	}
	return "some streams opened late, were disconnected for a while, ended early, or were not observed to the end"
}

// eventSize returns the number of bytes that the reference backend writes for noop n (docs/accounting.md has the sum).
func eventSize(n int) int {
	event := len(fmt.Sprintf("id: %d\n", n)) + len(": sent=1763690000000000\n") + len("data: 0\n") + 1
	return event + len(fmt.Sprintf("%x\r\n", event)) + len("\r\n")
}
