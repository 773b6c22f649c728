package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// heldSetting is of every suite that does something to a share of its streams, and holds the others through it.
var heldSetting = Setting{"MAX_HELD_LATE", "how many noops of the held streams may be late; -1: any number (default: 0)"}

// every says that each so many-th stream is of the share that is treated in another way (load-tests/lib/share.js).
func (r *Run) every() int { return max(int(r.number("EVERY")), 1) }

// isHeld says that a stream of a storm is of the share that is held.
func (r *Run) isHeld(n int) bool { return n%r.every() == 0 }

// held are the streams that were held while something was done to the others, judged as those of a soak.
func (r *Run) held(m *shard.Merged, is func(n int) bool) *verdict.Streams {
	held := *m
	held.Connections, held.Plan.Connections, held.Plan.MaxLate = shard.Connections{}, 0, int(r.number("MAX_HELD_LATE"))
	held.Runners = slices.Clone(m.Runners)
	for i := range held.Runners {
		held.Runners[i].Controlled = held.Runners[i].Controlled.OfHeld()
	}
	for n := range m.Plan.Connections {
		if is(n) {
			held.Plan.Connections++
		}
	}
	for _, c := range m.Connections.All() {
		if n, ok := m.Plan.Number(c.ID); ok && is(n) {
			held.Connections.Add(c)
		}
	}
	return verdict.StreamsOf(&held, r.Server, r.OneHost)
}

// faultsOf are the checks for held streams, whose limit of late ones is a setting of its own.
func faultsOf(held *verdict.Streams) []verdict.Check {
	all := held.Faults()
	for _, c := range all {
		for i, text := range c.Reasons {
			c.Reasons[i] = strings.ReplaceAll(text, "(MAX_LATE)", "("+heldSetting.Name+")")
		}
	}
	return all
}

// watchesCounter says that GAUGE names a counter: that rises with streams and memory, and never falls.
func (r *Run) watchesCounter() bool {
	return slices.ContainsFunc(r.Samples, func(s resources.Sample) bool { return s.Counter })
}

// noCounter is the reason where it does.
func noCounter(gauge, of string) string {
	return fmt.Sprintf("%s is a counter, which never falls: let GAUGE name a gauge of %s", gauge, of)
}

// lost says that a stream was lost and came back: no client cut it, and no service ended it on purpose. Where one does that, other
// checks know which streams it cut too early; a proxy may do it without an end that is in order.
func (r *Run) lost(o ledger.Outage) bool {
	m := r.Rounds[0]
	return !o.Planned && m.Plan.TokenTTL == 0 && !m.Service.EndsStreams()
}

// kept says that none of the held streams was lost, also where clients come back: they were to notice nothing.
func (r *Run) kept(held *verdict.Streams) verdict.Check {
	c := verdict.Check{ID: CheckBystanders, Name: "held streams lost", Limit: "0", Why: "who did nothing must not pay for the others"}
	if held.Connections.Opened == 0 {
		return c.NotJudged("no stream was opened")
	}
	lost := 0
	for one := range held.Records() {
		if slices.ContainsFunc(one.Outages, r.lost) {
			if lost++; lost <= mostLost {
				c.Reasons = append(c.Reasons, one.ID+" was held, and lost its stream")
			}
		}
	}
	c.Actual, c.Pass = format.Thousands(lost), lost == 0
	if lost > mostLost {
		c.Reasons = append(c.Reasons, fmt.Sprintf("and %s more", format.Thousands(lost-mostLost)))
	}
	return c
}

// allOf takes a pass back where not all the clients were treated as planned: nothing was tested then. rest ends
// the sentence "only 3 of 5 …".
func allOf(id verdict.CheckID, name string, treated, planned int, why, rest string) verdict.Check {
	c := verdict.Check{ID: id, Name: name, Limit: format.Thousands(planned), Actual: format.Thousands(treated), Pass: treated == planned && planned > 0, Why: why}
	if !c.Pass {
		c.Reasons = []string{fmt.Sprintf("only %s of %s %s", c.Actual, c.Limit, rest)}
	}
	return c.InDoubt()
}

// mostLost bounds the streams that kept names.
const mostLost = 10
