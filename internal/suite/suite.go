// Package suite knows the kinds of run beside the soak: which script makes the load, what it
// needs, and what its figures mean. Assessing is a pure function of what the runners left, so
// that a verdict can be made again at any time. docs/architecture.md says how a suite is made.
package suite

import (
	"maps"
	"slices"
	"strconv"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Suite is one kind of run.
type Suite struct {
	Name     string
	Short    string   // one line of help
	Script   []string // path of the k6 script from the repository's root
	Settings []Setting
	// Cluster says that the script also wants CLUSTER_URL: three backends behind one address.
	Cluster bool
	// Streams says that the script holds event streams: the backend that soak starts sends noops at
	// NOOP_INTERVAL, and its ledger is kept.
	Streams bool
	// MutualTLS says that the target speaks TLS, and wants a certificate of its clients.
	MutualTLS bool
	Runners   int    // by default; 0: 2
	Doc       string // page that says how the figures are judged; "": docs/http-suites.md
	Assess    func(*Run) verdict.Assessment
	// Next is the environment of one more round, nil when there is enough; nil: one round does.
	Next func(*Run) map[string]string
}

// A Setting is an environment variable that the script reads; its profile holds the default.
type Setting struct{ Name, Help string }

// A Run is what the runners of one run left.
type Run struct {
	Rounds  []*shard.Merged // the first is the suite, others searched further
	Samples []resources.Sample
	Server  verdict.ServerLedger // nil where the target keeps none
	Cores   int                  // of the machine
	OneHost bool                 // target and runners share it

	Failures []string // deaths of the target's processes: what they counted is lost with them
}

var all = map[string]Suite{}

func register(s Suite) { all[s.Name] = s }

func init() {
	for _, s := range []Suite{rampup, burst, upload, throughput, compare, handshake, capacity, churn, fanout} {
		register(s)
	}
}

// Find is the suite of that name.
func Find(name string) (Suite, bool) {
	s, ok := all[name]
	return s, ok
}

// All are the suites by name.
func All() []Suite {
	out := make([]Suite, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

// trend is a further trend of the script in a stage; one without values where there is none.
func (r *Run) trend(name, stage string) shard.Metric {
	for _, m := range r.Rounds {
		for _, metric := range m.Metrics {
			if metric.Name == name && metric.Tags[shard.TagStage] == stage && metric.Trend != nil {
				return metric
			}
		}
	}
	return shard.Metric{Trend: shard.NewHistogram()}
}

// number is a setting as the script understood it, 0 where it has none.
func (r *Run) number(name string) float64 {
	if r.Rounds[0].Suite == nil {
		return 0
	}
	v, _ := strconv.ParseFloat(r.Rounds[0].Suite.Parameters[name], 64) // "" is 0
	return v
}
