package suite

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/davecgh/go-spew/spew"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// soaking returns a soak of which one stream was never opened, one did not return, and one lost its last noop, which
// only the server's ledger shows.
func soaking() *Run {
	r := runOf("", nil)
	m := r.Rounds[0]
	m.Suite, m.Plan = nil, plan.Default()
	m.Plan.TestID, m.Plan.Prefix, m.Plan.Connections, m.Plan.Seconds, m.Plan.NoopInterval = "t", "d-", 0, 15, 1
	r.holding(4, 10*time.Second)
	c := m.Connections.Edit
	c(0).Record = ledger.Record{ID: "d-0", State: ledger.Connecting, Attempts: 2, Refusals: []ledger.Refusal{{Reason: "status 503", Count: 2}}}
	c(1).State, c(1).Reason = ledger.Waiting, "reset"
	c(2).Findings = make([]ledger.Finding, 0, 9) // room behind what it holds
	e := r.Server["d-2"]
	e.Last, e.Sent = e.Last+1, e.Sent+1
	r.Server["d-2"] = e
	return r
}

// A verdict is made again at any time, and several readers share the evidence: Judge writes to nothing that it is given.
func TestJudgeDoesNotModifyEvidence(t *testing.T) {
	t.Parallel()
	dump := spew.ConfigState{Indent: " ", SortKeys: true, DisableMethods: true, DisablePointerAddresses: true}
	for name, r := range map[string]*Run{
		"soak": soaking(), "churn": churning(), "capacity": climbing(10, 20), "fanout": spreading(5, 10), "cluster": compared(), "burst": bursts(), "throughput": levels(), "rampup": ramp(nil, 20, 50), "upload": uploads(nil), "storm": dropping(), "vanish": vanishing(), "slow": slowed(),
	} {
		r.Warnings = append(make([]string, 0, 9), "known before")
		before := dump.Sdump(r)
		v := judged(r)
		require.Equal(t, before, dump.Sdump(r), name)
		require.Equal(t, v, judged(r), name)
		for _, c := range r.Rounds[0].Connections.All() {
			for _, behind := range c.Findings[len(c.Findings):cap(c.Findings)] {
				require.Zero(t, behind, "%s: nor behind what a record holds", name)
			}
		}
	}
}

// What only the end of a stream or the server's ledger shows is in the verdict, and in its records for the reports.
func TestRecordsMatchTheVerdict(t *testing.T) {
	t.Parallel()
	v := judged(soaking())
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Equal(t, verdict.Connections{Planned: 4, Opened: 3, Completed: 2, Refused: 1, Dropped: 1}, v.Connections)
	var states []string
	for c := range v.Records() {
		states = append(states, string(c.State))
		if c.ID == "d-2" {
			require.EqualValues(t, 1, c.Missed())
			require.Len(t, c.Findings, 1)
		}
	}
	require.Equal(t, "refused dropped completed completed", strings.Join(states, " "))
}

// The help of a setting has the default that is in the script.
func TestHelpShowsScriptDefaults(t *testing.T) {
	t.Parallel()
	said := regexp.MustCompile(`\(default: (-?\d+)(?:, smoke: (\d+))?\)`)
	for _, s := range []Suite{slowReaders, storm, vanish} {
		script, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, s.Script...)...))
		require.NoError(t, err)
		for _, setting := range s.Settings {
			if setting.Name == "GAUGE" {
				continue
			}
			parts := said.FindStringSubmatch(setting.Help)
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

// asked are the comparisons in a file by which it finds out which suite a run is of: with the field Suite of a plan, a
// shard or a verdict against nil or a text, or with the name of a suite.
func asked(t *testing.T, path string, names map[string]bool) (out []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	isSuite := func(e ast.Expr) bool {
		if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 { // len(p.Suite)
			e = call.Args[0]
		}
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Suite"
	}
	isFixed := func(e ast.Expr) bool {
		_, literal := e.(*ast.BasicLit)
		id, ok := e.(*ast.Ident)
		return literal || ok && id.Name == "nil"
	}
	isName := func(e ast.Expr) bool {
		literal, ok := e.(*ast.BasicLit)
		return ok && names[strings.Trim(literal.Value, "\"`")]
	}
	found := func(at token.Pos) { out = append(out, files.Position(at).String()) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ && n.Op != token.GTR {
				return true
			}
			for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
				if isSuite(side[0]) && isFixed(side[1]) || isName(side[0]) {
					found(n.Pos())
					break
				}
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isSuite(n.Tag) {
				found(n.Pos())
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				if isName(e) {
					found(e.Pos())
				}
			}
		}
		return true
	})
	return out
}

// inTemplate finds the same question in a template.
var inTemplate = regexp.MustCompile(`\{\{-? *(if|with|else if)[^}]*\.Suite\b`)

// No other package asks which suite a run is of: what differs between suites is a field of Suite or verdict.Layout.
// Developers' tools and tests are exempt, since they choose what they run.
func TestOnlyThisPackageComparesSuites(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range append(All(), Default()) {
		names[s.Name] = true
	}
	root := filepath.Join("..", "..")
	read := 0
	for _, folder := range []string{"internal", "cmd", "k6", "backend"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			switch {
			case d.IsDir() && (d.Name() == "suite" || d.Name() == "testdata"):
				return fs.SkipDir
			case strings.HasSuffix(path, ".tmpl"):
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NotRegexp(t, inTemplate, string(b), path)
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				read++
				require.Empty(t, asked(t, path, names), "ask for what the suite says instead")
			}
			return nil
		}))
	}
	require.Greater(t, read, 100, "the sources are where they were")
}

func TestSuiteComparisonsAreFound(t *testing.T) {
	t.Parallel()
	for question, lines := range map[string]int{
		`p.Suite == ""`: 1, `"" != v.Plan.Suite`: 1, `v.Suite != nil`: 1, `len(p.Suite) > 0`: 1, `name == "churn"`: 1,
		`p.Suite == q.Suite`: 0, `v.Layout.Declared`: 0,
	} {
		path := filepath.Join(t.TempDir(), "a.go")
		require.NoError(t, os.WriteFile(path, []byte("package a\n\nvar _ = "+question+"\n"), 0o600))
		require.Len(t, asked(t, path, map[string]bool{"churn": true}), lines, question)
	}
}
