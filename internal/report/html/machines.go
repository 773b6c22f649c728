package html

import (
	"math"

	"github.com/sse-soak/sse-soak/internal/report"
)

// machines are what AWS and the kernels of the machines may have done to the streams.
func (s *subject) machines() Section {
	out := Section{ID: "machines", Title: "The machines", Short: "Machines"}
	if t, ok := report.Machines(s.v, math.MaxInt); ok {
		t.Title = ""
		out.Tables = []Table{suiteTable(t)}
	}
	return out
}
