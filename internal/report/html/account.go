package html

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
)

// account is the ledger of messages, per runner and in total, beside what the server says.
func (s *subject) account() Section {
	t := Table{Columns: columns("runner", "host", "state", "#connections")}
	for _, n := range s.v.Messages.Each() {
		if s.counted() {
			t.Columns = append(t.Columns, columns("#"+n.Name)...)
		}
	}
	if s.v.Server.Known {
		t.Columns = append(t.Columns, columns("#server sent")...)
	}
	add := func(name, host, state string, connections int, n ledger.Totals, sent uint64) {
		row := cells(name, host, state, format.Thousands(connections))
		if state != "" && state != "finished" {
			row[2].Tone = Doubt
		}
		for _, total := range n.Each() {
			if !s.counted() {
				break
			}
			row = append(row, s.total(total))
		}
		if s.v.Server.Known {
			row = append(row, Cell{Text: format.Thousands(sent)})
		}
		t.Rows = append(t.Rows, row)
	}
	for _, r := range s.v.Runners {
		add(fmt.Sprint(r.Index), r.Host, r.State, r.Connections, r.Totals, r.ServerSent)
	}
	add("all", "", "", s.Merged.Connections.Len(), s.v.Messages.Totals, s.v.Server.Sent)
	out := Section{ID: "account", Title: "Every " + s.v.Service.Noun() + " accounted for", Short: s.nouns(true), Tables: []Table{t}}
	s.accountOfMessages(&out)
	if t, ok := s.findings(); ok {
		out.Tables = append(out.Tables, t)
	}
	return out
}

// findings returns the table of finding groups, in order of time.
func (s *subject) findings() (t Table, ok bool) {
	const most = 100
	n := len(s.v.Groups)
	t = Table{Caption: "What was found", Columns: columns("when (UTC)", "kind", "#connections", "what")}
	if n > most {
		t.Caption = fmt.Sprintf("What was found: the first %d of %s; connections.csv has each finding", most, format.Count(n, "group"))
	}
	for _, g := range s.v.Groups[:min(n, most)] {
		t.Rows = append(t.Rows, Row{{Text: clock(g.FirstUnix), At: g.FirstUnix}, {Text: g.Kind}, {Text: format.Thousands(g.Connections)}, {Text: g.Text}})
	}
	return t, n > 0
}

// arithmetic is docs/math.md with the numbers of this run, if messages are expected by interval.
func (s *subject) arithmetic() Section {
	if !s.v.Service.ByInterval() {
		return Section{}
	}
	p, n, nouns := s.v.Plan, s.v.Messages, s.nouns(false)
	per := p.NoopsPerConnection()
	product := uint64(max(per*p.Connections, 0))
	held := p.Hold().Seconds()
	t := Table{Columns: columns("what", "how", "#this run")}
	add := func(name, how, value string) { t.Rows = append(t.Rows, cells(name, how, value)) }
	add("held", fmt.Sprintf("%d s − %d s before the end", p.Seconds, p.Seconds-int(held)), duration(1000*held))
	add(nouns+" of a connection, at least", fmt.Sprintf("floor(%.0f / %v)", held, p.NoopInterval), format.Thousands(per))
	add(nouns+" of all, at least", fmt.Sprintf("%s × %s", format.Thousands(p.Connections), format.Thousands(per)), format.Thousands(product))
	add(nouns+" that were expected", "summed over all streams, while each was open", format.Thousands(n.Expected))
	difference := clamp.Int(n.Expected) - clamp.Int(product)
	add("beyond the product", explain(difference, p.Connections), plus(format.Thousands(difference), float64(difference)))
	rate := float64(p.Connections) / p.NoopInterval
	add("rate", fmt.Sprintf("%s / %v s", format.Count(p.Connections, "connection"), p.NoopInterval), fmt.Sprintf("%.1f %s/s", rate, nouns))
	if data := s.v.Service.Data; data != "" {
		size := len("data: \n\n") + len(data)
		add("payload of the bare "+s.v.Service.Noun(), fmt.Sprintf("%d bytes (data: %s and two line ends) × received", size, data), memory(float64(size)*float64(n.Received)/(1<<20)))
	}
	if s.v.Server.Known && s.Merged.Connections.Len() > 0 {
		size := eventSize(per)
		add("events on the wire", fmt.Sprintf("%d bytes at noop %s, with id, timestamp and chunk × received", size, format.Thousands(per)), memory(float64(size)*float64(n.Received)/(1<<20)))
	}
	return Section{ID: "arithmetic", Title: "The arithmetic", Short: "Arithmetic", Tables: []Table{t}}
}

// explain says why what was owed is not the product.
func explain(difference, connections int) string {
	switch {
	case difference == 0:
		return "none"
	case difference > 0 && difference <= connections:
		return "streams that received one message more: the interval does not divide the time held, or the end took a moment"
	case difference > 0:
		return "streams were held longer, or messages came more often, than planned"
	}
	return "connections that opened late, were without a stream for a while, or were not held to the end"
}

// eventSize is what our backend writes for noop number n, with the framing of its chunk:
// docs/math.md has the sum.
func eventSize(n int) int {
	event := len(fmt.Sprintf("id: %d\n", n)) + len(": sent=1763690000000000\n") + len("data: 0\n") + 1
	return event + len(fmt.Sprintf("%x\r\n", event)) + len("\r\n")
}
