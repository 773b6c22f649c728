package shard

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// CheckConnections returns problems for planned clients without a record or with more than one, and for clients that
// are not planned. Merger.Merged does not call it if the scripts declare their streams, because such a suite may end
// early.
func (m *Merged) CheckConnections() (problems []string) {
	switch {
	case len(m.groups) == 1 && m.groups[0].hasTwoRuns:
		return nil
	case len(m.groups) < 2:
		return m.checkIDs(m.Plan, m.Connections.All())
	}
	for _, g := range m.groups {
		if !g.hasTwoRuns {
			problems = append(problems, m.checkIDs(g.plan, m.Connections.recordsOf(g.first, g.first+g.runners))...)
		}
	}
	return problems
}

func (m *Merged) checkIDs(p plan.Plan, connections iter.Seq2[int, *Connection]) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	records := make([]uint8, p.Connections) // number of records per client, up to 2
	replaced := make([]bool, p.Connections) // clients with a record of a runner that was replaced
	foreign := map[string]bool{}            // ids that the plan does not have
	for _, c := range connections {
		if n, ok := p.Number(c.ID); ok {
			if m.Runners[c.Runner].Replaced {
				replaced[n] = true
				continue
			}
			records[n] = min(records[n]+1, 2)
		} else {
			foreign[c.ID] = true
		}
	}
	var missing, duplicates clientIDs
	for n, count := range records {
		switch {
		case count == 0 && !replaced[n]:
			missing.add(p, n)
		case count == 2:
			duplicates.add(p, n)
		}
	}
	if missing.count > 0 {
		problem("%d of %s %s not observed: %s", missing.count, format.Plural(p.Connections, "planned client", "planned clients"),
			format.Form(missing.count, "was", "were"), shortList(missing.first))
	}
	if duplicates.count > 0 {
		problem("%s observed more than once: %s", format.Plural(duplicates.count, "client was", "clients were"), shortList(duplicates.first))
	}
	if len(foreign) > 0 {
		problem("%s not part of this plan: %s", format.Plural(len(foreign), "client is", "clients are"), shortList(slices.Sorted(maps.Keys(foreign))))
	}
	return problems
}

type clientIDs struct {
	count int
	first []string
}

func (i *clientIDs) add(p plan.Plan, number int) {
	if i.count++; len(i.first) <= maxListed {
		i.first = append(i.first, p.ClientID(number))
	}
}

const maxListed = 5

func shortList(ids []string) string {
	if len(ids) <= maxListed {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:maxListed], ", ") + ", …"
}
