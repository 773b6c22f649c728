// Package suite defines the kinds of run: the script that generates the load, its requirements, and the checks and
// metrics of its results. No other package depends on the kind of a run. An assessment depends only on the files of a
// run, so it can be repeated at any time. docs/architecture.md describes the parts of a suite.
package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Suite is one kind of run.
type Suite struct {
	Name   string
	Short  string   // one line of help
	Script []string // path of the k6 script from the repository's root
	// Variables are environment variables that the modules of services read.
	Variables []string
	Plan      Plan
	Target    Target
	Runners   Runners
	Sampling  Sampling
	Page      Page
	Assess    func(*Run) verdict.Assessment
	// Disturbed reports whether the script acts on stream n, from 0. nil: on no stream.
	Disturbed func(r *Run, n int) bool
	// Metrics returns further metrics to compare with other runs. A nil func means that Assess returns all metrics.
	Metrics func(*verdict.Verdict) []verdict.Metric
	// Next returns the environment of the next round; nil ends the run. A nil func means one round. Only a run with all
	// runners on this machine has further rounds.
	Next func(*Run) map[string]string
}

// A Plan states how a suite defines the plan of a run.
type Plan struct {
	// BySettings is true if the settings of package plan define the plan. Such a plan is known before the script is
	// loaded, and a merge compares it with the plans of the runners. Otherwise the script declares the plan.
	BySettings bool
	// Profiles has the defaults (NAME=value) of the settings of package plan, by profile.
	Profiles map[string][]string
}

// A Target is the service that a suite needs.
type Target struct {
	Kind          TargetKind
	Streams       bool // event streams: a local backend sends noops at NOOP_INTERVAL and keeps a ledger
	SeparateCores bool // a local service and the runners get separate cores, unless PIN is set
}

// A TargetKind states how soak deploys the service.
type TargetKind int

// The kinds of targets.
const (
	Proxied   TargetKind = iota // a backend behind nginx
	Direct                      // a backend; with --no-nginx=false behind nginx
	Cluster                     // a backend, and CLUSTER_SIZE backends behind CLUSTER_URL
	MutualTLS                   // a TLS server that requires client certificates
	Model                       // the numbered model, which answers as a language model does
)

// Runners holds the default number of runners of a suite, and the environments that do not support the suite.
type Runners struct {
	Default      int    // 0 means 2
	OneMachine   string // why the runners cannot be on several machines (--runner K/N); "" if they can
	NoKubernetes string // why the runners cannot be on Kubernetes; "" if they can
}

// oneRunner is for suites whose script coordinates all streams.
var oneRunner = Runners{Default: 1, OneMachine: "one runner must control all streams"}

// Sampling states how target and host are sampled.
type Sampling struct {
	Interval time.Duration // 0 means one second
	Optional bool          // no check needs the samples, so a lack of samples is a warning
}

// A Page names the documentation of a suite, and states what its report and its progress line show.
type Page struct {
	Doc      string   // page that explains the figures
	Sections []string // of report.html; nil means declaredSections
	Ended    string   // what the progress line calls streams that the script ended; "" means "dropped by the script"
}

const httpDoc = "docs/http.md"

var declaredSections = []string{
	"checks", "actions", "results", "curves", "settings", "processes", "machines", "comparison", "data",
}

// A Run is the evidence of a run.
type Run verdict.Evidence

// Judge returns the verdict of a run of any suite.
func Judge(e *verdict.Evidence) (*verdict.Verdict, error) {
	s, err := ByName(e.Rounds[0].Plan)
	if err != nil {
		return nil, err
	}
	a := s.Assess((*Run)(e))
	if a.Layout = s.Layout(); s.Disturbed != nil {
		for n := range e.Rounds[0].Plan.Connections {
			a.Layout.Disturbed = append(a.Layout.Disturbed, s.Disturbed((*Run)(e), n))
		}
	}
	return verdict.Judge(e, a), nil
}

// Layout returns the layout of verdicts of the suite.
func (s *Suite) Layout() verdict.Layout {
	l := verdict.Layout{Title: strings.ToUpper(s.Name[:1]) + s.Name[1:], Declared: s.Declares(), Page: s.Page.Sections}
	if l.Page == nil {
		l.Page = declaredSections
	}
	return l
}

// Declares reports whether the script declares stages. It does not if the settings of package plan define the plan of
// the suite, and the suite has no settings of its own.
func (s *Suite) Declares() bool { return !s.Plan.BySettings || len(s.Settings()) > 0 }

// Settings returns the settings that only the script of the suite reads.
func (s *Suite) Settings() []plan.Setting { return plan.ScriptSettings(s.Name) }

// suites lists the suites of `soak run NAME`, sorted by name.
var suites = []Suite{burst, capacity, churn, clusterSuite, fanout, finite, handshake, rampup, resume, slowReaders, storm, throughput, upload, vanish}

// Default returns the suite of `soak run` without a name.
func Default() Suite { return soak }

// All returns the suites of `soak run NAME`, sorted by name. Default is not one of them.
func All() []Suite { return slices.Clone(suites) }

// ByName returns the suite of a plan. The plan of the default suite names no suite.
func ByName(p plan.Plan) (Suite, error) {
	for _, s := range append(All(), soak) {
		if s.InPlan() == p.Suite {
			return s, nil
		}
	}
	return Suite{}, fmt.Errorf("the plan has the unknown suite %q; use a version of soak that has this suite", p.Suite)
}

// InPlan returns the name in the field suite of plan.json: "" for the default suite.
func (s *Suite) InPlan() string {
	if s.Name == soak.Name {
		return ""
	}
	return s.Name
}

// Check returns an error if a plan is not valid for the suite.
func (s *Suite) Check(p plan.Plan) error {
	if s.Plan.BySettings {
		return p.Check()
	}
	return p.CheckDeclared()
}

// Declared returns the plan that the script of a runner declares. ok is false if the script declares no suite: then the
// plan in the shard is complete.
func Declared(s *shard.Shard, runners int) (p plan.Plan, ok bool) {
	if s.Suite == nil {
		return p, false
	}
	return plan.Plan{Suite: s.Suite.Name, TestID: s.Runner.TestID, Runners: runners}, true
}

// number returns the number that the script recorded for a setting; 0 if it recorded no number.
func (r *Run) number(name string) float64 {
	v, _ := strconv.ParseFloat(r.parameter(name), 64) // "" is 0
	return v
}

// duration returns the number that the script recorded for a setting, in the given unit; 0 if it recorded none.
func (r *Run) duration(name string, unit time.Duration) time.Duration {
	return time.Duration(r.number(name) * float64(unit))
}

// share returns the percentage that the script recorded for a setting as a share, 0 to 1. For "0.7" it parses 0.7e-2,
// which equals a share of counts, 7/1000. In floating point, 0.7/100 does not.
func (r *Run) share(name string) float64 {
	v, err := strconv.ParseFloat(r.parameter(name)+"e-2", 64)
	if err != nil { // "", or a number with an exponent
		return r.number(name) / 100
	}
	return v
}

// parameter returns the value that the script recorded for a setting; "" if no shard has one.
func (r *Run) parameter(name string) string {
	if r.Rounds[0].Suite == nil {
		return ""
	}
	return r.Rounds[0].Suite.Parameters[name]
}

// Title describes the plan of a run in one line.
func Title(v *verdict.Verdict) string {
	p := v.Plan
	name := cmp.Or(p.Suite, soak.Name)
	if p.Service != "" {
		name += " of " + p.ServiceName()
	}
	var parts []string
	if v.Suite != nil && v.Suite.Profile != "" {
		parts = append(parts, "profile "+v.Suite.Profile)
	}
	if p.Connections > 0 {
		parts = append(parts, format.Count(p.Connections, "stream"))
	}
	if p.Seconds > 0 {
		parts = append(parts, format.Duration(time.Duration(p.Seconds)*time.Second))
	}
	if p.NoopInterval > 0 || v.Service.Name != "" {
		parts = append(parts, verdict.IntervalText(&p, &v.Service))
	}
	return name + ": " + strings.Join(append(parts, format.Count(p.Runners, "runner")), ", ")
}

// Metrics returns the metrics by which runs are compared. A run lacks a metric whose value is unknown, so the metrics
// of two runs must be matched by name. Units are "ms", "MiB", "%" (of a core), a unit of the suite, or "" for a count.
func Metrics(v *verdict.Verdict) []verdict.Metric {
	failed := 0
	if v.Verdict == verdict.Fail {
		failed = 1
	}
	out := []verdict.Metric{fault("failed verdict", uint64(failed))}
	kind, err := ByName(v.Plan)
	// In suites that add streams up to a breaking point, losses are not faults.
	if err == nil && kind.Plan.BySettings || slices.ContainsFunc(v.Checks, func(c verdict.Check) bool { return c.ID == verdict.CheckMissed }) {
		out = append(out, fault("connections refused", clamp.Uint64(v.Connections.Refused)), fault("connections dropped", clamp.Uint64(v.Connections.Dropped)))
		for _, n := range v.Messages.Each() {
			if n.Fault && v.Service.CountsMessages() {
				out = append(out, fault(v.Service.Noun()+"s "+n.Name, n.Count))
			}
		}
		if p := v.Messages.Published; p != nil {
			out = append(out, fault("messages not confirmed", p.Planned-min(p.Confirmed, p.Planned)))
		}
	}
	out = append(out, v.Metrics...)
	if err == nil && kind.Metrics != nil {
		out = append(out, kind.Metrics(v)...)
	}
	return out
}

func fault(name string, n uint64) verdict.Metric {
	return verdict.Metric{Name: name, Value: float64(n), Fault: true}
}
