// Package suite knows the kinds of run, the soak among them: which script makes the load, what it needs, and what its
// metrics mean. No other package asks which kind a run is. Assessing is a pure function of what the runners left, so that
// a verdict can be made again at any time. docs/architecture.md says how a suite is made.
package suite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Suite is one kind of run.
type Suite struct {
	Name     string
	Short    string   // one line of help
	Script   []string // path of the k6 script from the repository's root
	Settings []Setting
	// Planned says that the plan is known before the script is loaded: the settings are those of plan.Plan, which the
	// script finds in its environment, and a merge compares them. Else the script has Settings, and states its plan.
	Planned bool
	// Profiles are, by name, what settings of a plan are where nobody says: NAME=value. Only a suite that is Planned has
	// them; the script of another one has its own.
	Profiles map[string][]string
	// Staged says of one that is Planned that its script declares stages all the same.
	Staged bool
	// Cluster says that the script also wants CLUSTER_URL: three backends behind one address.
	Cluster bool
	// Streams says that the script holds event streams: the backend that soak starts sends noops at
	// NOOP_INTERVAL, and its ledger is kept.
	Streams bool
	// MutualTLS says that the target speaks TLS, and wants a certificate of its clients.
	MutualTLS bool
	Runners   int    // by default; 0: 2
	Doc       string // page that says how the figures are judged; "": docs/http-suites.md
	// Summary says that k6 writes its own summary and checks the script's thresholds. For that it keeps every value of
	// every trend: memory would grow with the requests.
	Summary bool
	// Direct says that soak starts the backend without nginx in front of it; --no-nginx=false takes that back.
	Direct bool
	// Apart says that a service which soak starts and the runners get cores of their own where PIN says nothing: the suite asks
	// what the service can do, so what the runners take of its cores would be missing in the answer.
	Apart   bool
	Samples time.Duration // how often target and host are sampled; 0: every second
	// OneMachine says in a sentence why the runners cannot be on several machines (--runner K/N), NoCluster why they
	// cannot be on Kubernetes; "" where they can.
	OneMachine string
	NoCluster  string
	// Aside is what the progress line says of streams that ended to which the script does something; "" where it does
	// nothing to any that ends them for good.
	Aside string
	// Page has the sections of report.html in their order; nil: those of a script that declares what it does.
	Page []string
	// Optional says that no criterion rests on the samples of target and host: ones that cannot be read are a warning.
	Optional bool
	Assess   func(*Run) verdict.Assessment
	// Metrics are those to compare with other runs, beside the ones that Assess gives; nil: none.
	Metrics func(*verdict.Verdict) []verdict.Metric
	// Next is the environment of one more round, nil when there is enough; nil: one round does. Only a run whose runners
	// are all on this machine asks for it: elsewhere the first round is all there is.
	Next func(*Run) map[string]string
}

// declaredPage are the sections for what a script declared.
var declaredPage = []string{"criteria", "actions", "found", "curves", "settings", "processes", "machines", "spikes", "comparison", "data"}

// A Setting is an environment variable that the script reads; its profile holds the default.
type Setting struct{ Name, Help string }

// A Run is the evidence of a run, as a suite reads it.
type Run verdict.Evidence

// Judge makes the verdict of a run of any suite.
func Judge(e *verdict.Evidence) (*verdict.Verdict, error) {
	s, err := Of(e.Rounds[0].Plan)
	if err != nil {
		return nil, err
	}
	a := s.Assess((*Run)(e))
	a.Layout = s.Layout()
	return verdict.Judge(e, a), nil
}

// Layout is how verdicts of the suite are written and shown.
func (s *Suite) Layout() verdict.Layout {
	l := verdict.Layout{Title: strings.ToUpper(s.Name[:1]) + s.Name[1:], Declared: !s.Planned || s.Staged, Page: s.Page}
	if l.Page == nil {
		l.Page = declaredPage
	}
	return l
}

// named are the suites of `soak run NAME`, sorted by name.
var named = []Suite{burst, capacity, churn, clusterSuite, fanout, handshake, rampup, resume, slowReaders, storm, throughput, upload, vanish}

// Default is the suite of a run that names none.
func Default() Suite { return soak }

// All are the suites that `soak run NAME` names, by name; Default is not among them.
func All() []Suite { return slices.Clone(named) }

// Of is the suite of a plan. A plan of the default suite names none.
func Of(p plan.Plan) (Suite, error) {
	for _, s := range append(All(), soak) {
		if s.InPlan() == p.Suite {
			return s, nil
		}
	}
	return Suite{}, fmt.Errorf("it is a run of the suite %q, which this version does not know", p.Suite)
}

// InPlan is the name as plan.json has it in the field suite: "" for the default suite.
func (s *Suite) InPlan() string {
	if s.Name == soak.Name {
		return ""
	}
	return s.Name
}

// Check says in one sentence what is wrong with a plan of this suite, nil if nothing is.
func (s *Suite) Check(p plan.Plan) error {
	if s.Planned {
		return p.Check()
	}
	return p.CheckDeclared()
}

// Declared is the plan of a run as far as the script of a runner declares it; ok is false where the runner's own plan
// says it all.
func Declared(s *shard.Shard, runners int) (p plan.Plan, ok bool) {
	if s.Suite == nil {
		return p, false
	}
	return plan.Plan{Suite: s.Suite.Name, TestID: s.Runner.TestID, Runners: runners}, true
}

// number is a setting as the script understood it, 0 where it has none.
func (r *Run) number(name string) float64 {
	if r.Rounds[0].Suite == nil {
		return 0
	}
	v, _ := strconv.ParseFloat(r.Rounds[0].Suite.Parameters[name], 64) // "" is 0
	return v
}
