package main

import (
	"strings"

	cuts "github.com/sse-soak/sse-soak/internal/plan"
)

// expectBreaks adds the expected results for cuts and actions to those for messages.
func (sc *scenario) expectBreaks(e *verdictExpectation) {
	set := func(name string, s span) { e.Counts[name] = s }
	switch sc.Family {
	case "resume":
		if sc.HubFault.Action != "" { // messages may also have been lost at a disconnect
			set("cuts lost", anyCount)
			set("cuts broken", anyCount)
		}
		for _, name := range []string{"lost", "duplicated", "announced", "broken", "not made"} {
			e.Counts.add("cuts "+name, span{})
		}
		if sc.HubFault.StreamsOf != "" {
			for _, kind := range cuts.CutKinds() {
				if planned := strings.Contains(sc.HubFault.StreamsOf, kind) || sc.HubFault.StreamsOf == "closed" && (kind == cuts.CutFIN || kind == cuts.CutRST); !planned {
					set("cuts broken by "+kind, span{})
				}
			}
		}
	case "action":
		set("action: streams lost", exactCount(sc.Plan.Connections))
		set("action: missed", e.Counts["missed"])
		set("action: not resumed", e.Counts["not expected"])
		set("action: duplicated", e.Counts["duplicated"])
		set("action: streams not back", e.Counts["dropped"])
	}
}
