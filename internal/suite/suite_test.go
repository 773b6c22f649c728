package suite

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/davecgh/go-spew/spew"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newSoakRun returns a soak with three faults: one stream was never opened, one did not reconnect, and one lost its
// last noop, which only the server's ledger shows.
func newSoakRun() *Run {
	r := runOf("", nil)
	m := r.Rounds[0]
	m.Suite, m.Plan = nil, plan.Default()
	m.Plan.TestID, m.Plan.Prefix, m.Plan.Connections, m.Plan.Seconds, m.Plan.NoopInterval = "t", "d-", 0, 15, 1
	r.addStreams(4, 10*time.Second)
	c := m.Connections.Edit
	c(0).Record = ledger.Record{ID: "d-0", State: ledger.Connecting, Attempts: 2, Refusals: []ledger.Refusal{{Reason: "status 503", Count: 2}}}
	c(1).State, c(1).Reason = ledger.Waiting, "reset"
	c(2).Findings = make([]ledger.Finding, 0, 9) // spare capacity after the elements
	e := r.Server["d-2"]
	e.Last, e.Sent = e.Last+1, e.Sent+1
	r.Server["d-2"] = e
	return r
}

func TestSettingsInSecondsAcceptDurations(t *testing.T) {
	t.Parallel()
	for _, kind := range All() {
		for _, s := range kind.Settings() {
			if regexp.MustCompile(`\bseconds\b`).MatchString(s.Help) {
				seconds, err := plan.ParseNumber(s.Name, "1m")
				require.NoError(t, err, "%s of %s", s.Name, kind.Name)
				require.InDelta(t, 60, seconds, 0)
			}
		}
	}
}

// Judge does not modify its arguments, because a run may be judged again, and several readers share the evidence.
func TestJudgeDoesNotModifyEvidence(t *testing.T) {
	t.Parallel()
	dump := spew.ConfigState{Indent: " ", SortKeys: true, DisableMethods: true, DisablePointerAddresses: true}
	for name, r := range map[string]*Run{
		"soak": newSoakRun(), "churn": newChurnRun(), "capacity": newCapacityRun(10, 20), "fanout": newFanoutRun(5, 10), "cluster": newOneRoundRun(), "burst": newBurstRun(), "throughput": newThroughputRun(), "rampup": newRampRun(20, 50), "upload": newUploadRun(), "storm": newStormRun(), "vanish": newVanishRun(), "slow": newSlowRun(),
	} {
		r.Warnings = append(make([]string, 0, 9), "a warning of the run")
		unchanged := dump.Sdump(r)
		v := judge(r)
		require.Equal(t, unchanged, dump.Sdump(r), name)
		require.Equal(t, v, judge(r), name)
		for _, c := range r.Rounds[0].Connections.All() {
			for _, spare := range c.Findings[len(c.Findings):cap(c.Findings)] {
				require.Zero(t, spare, "%s: the spare capacity of a record is modified", name)
			}
		}
	}
}

// The verdict and its records include the faults that only the end of a stream or the server's ledger reveals.
func TestRecordsMatchTheVerdict(t *testing.T) {
	t.Parallel()
	v := judge(newSoakRun())
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Equal(t, verdict.Connections{Planned: 4, Opened: 3, Completed: 2, Refused: 1, Dropped: 1}, v.Connections)
	var states []string
	for _, c := range v.Records() {
		states = append(states, string(c.State))
		if c.ID == "d-2" {
			require.EqualValues(t, 1, c.Missed())
			require.Len(t, c.Findings, 1)
		}
	}
	require.Equal(t, "refused dropped completed completed", strings.Join(states, " "))
}

func TestHelpShowsScriptDefaults(t *testing.T) {
	t.Parallel()
	defaultText := regexp.MustCompile(`[(;] ?default: (-?\d+)(?:, smoke: (\d+))?\)`)
	for _, s := range []Suite{slowReaders, storm, vanish} {
		script, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, s.Script...)...))
		require.NoError(t, err)
		for _, setting := range s.Settings() {
			if setting.Name == "GAUGE" {
				continue
			}
			parts := defaultText.FindStringSubmatch(setting.Help)
			require.NotNil(t, parts, "%s: %s has no default in its help", s.Name, setting.Name)
			for _, value := range parts[1:] {
				if value == "" {
					continue
				}
				require.Regexp(t, `\b`+setting.Name+`(: |', )`+value+`\b`, string(script), s.Name)
			}
		}
	}
}

// No other package compares suites: their differences are fields of Suite or verdict.Layout. Developers' tools and
// tests are exempt, because they choose what they run.
func TestOnlyThisPackageComparesSuites(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range append(All(), Default()) {
		names = append(names, s.Name)
	}
	name := `"(` + strings.Join(names, "|") + `)"`
	// A comparison of a field Suite with nil or a text, or of its length with a number, or of anything with the name of
	// a suite.
	comparison := regexp.MustCompile(`\.Suite\)? (==|!=|>) ("|nil|\d)|("|nil) (==|!=) [\w.]+\.Suite\b|switch [\w.]+\.Suite\b` +
		`|(==|!=) ` + name + `|` + name + ` (==|!=)|case .*` + name + `|\{\{-? *(if|with|else if)[^}]*\.Suite\b`)
	mentions := func(line string) bool { // reports whether the line can match, without the slow regular expression
		return strings.Contains(line, ".Suite") || slices.ContainsFunc(names, func(name string) bool { return strings.Contains(line, `"`+name+`"`) })
	}
	for line, want := range map[string]bool{
		`p.Suite == ""`: true, `"" != v.Plan.Suite`: true, `v.Suite != nil`: true, `len(p.Suite) > 0`: true, `name == "churn"`: true,
		`{{if .Suite}}`: true, `p.Suite == q.Suite`: false, `v.Layout.Declared`: false,
	} {
		require.Equal(t, want, comparison.MatchString(line), line)
	}
	root := filepath.Join("..", "..")
	files := 0
	for _, folder := range []string{"internal", "cmd", "k6", "backend"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			switch {
			case d.IsDir() && (d.Name() == "suite" || d.Name() == "testdata"):
				return fs.SkipDir
			case strings.HasSuffix(path, ".tmpl") || strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				source, err := os.ReadFile(path)
				require.NoError(t, err)
				files++
				for line := range strings.Lines(string(source)) {
					require.False(t, mentions(line) && comparison.MatchString(line), "%s: read a field of the suite instead: %s", path, line)
				}
			}
			return nil
		}))
	}
	require.Greater(t, files, 100, "the folders contain too few source files, so the walk missed some")
}

func TestRunWithoutShardsIsInvalid(t *testing.T) {
	t.Parallel()
	for _, s := range append(All(), Default()) {
		p := plan.Default()
		p.Suite = s.InPlan()
		v := judge(&Run{Rounds: []*shard.Merged{shard.Merge(p, nil)}})
		require.Equal(t, verdict.Invalid, v.Verdict, s.Name)
		require.Contains(t, v.Sentence, "left no shard", s.Name)
		for _, c := range v.Checks {
			require.False(t, s.Name == "soak" && c.State() == verdict.Broken, "%s: %s", c.Name, c.Actual)
		}
	}
}

// Requests within less than a second have no rate.
func TestRateOfEndRequestsIsNotExtrapolated(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{.1: "", 2: "30"} {
		e := &verdict.EndRequests{EndTimes: verdict.EndTimes{Count: 60}, Seconds: seconds}
		require.Equal(t, want, endTables(e)[0].Rows[0][2], seconds)
	}
	require.Empty(t, endTables(nil))
}
