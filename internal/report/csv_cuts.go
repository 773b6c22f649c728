package report

import (
	"encoding/csv"
	"io"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// CutsCSV writes a row for each cut that the run made of its own streams, by connection. A time is empty where nothing came.
func CutsCSV(w io.Writer, m *shard.Merged, v *verdict.Verdict) error {
	out := csv.NewWriter(w)
	row(out, "id", "runner", "cut", "at_unix_s", "behind", "ended_the_stream", "back_unix_s", "asked", "first_unix_s", "first_message", "away_s",
		"lost", "doubled", "repeated", "announced")
	for r, c := range v.EachCut() {
		runner := m.Runners[r.Runner]
		away := ""
		if d, ok := c.Away(); ok {
			away = decimals(d, time.Second)
		}
		row(out, cell(r.ID), runner.Index, cell(c.Kind), stamp(true, runner.At(c.At)), number(c.Behind), c.Lost, stamp(c.Back > 0, runner.At(c.Back)), c.Asked,
			stamp(c.First > 0, runner.At(c.First)), number(c.Next), away, c.Missed, c.Doubled, c.Repeated, c.Announced)
	}
	out.Flush()
	return out.Error()
}
