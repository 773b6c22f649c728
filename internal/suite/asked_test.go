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

	"github.com/stretchr/testify/require"
)

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
func TestOnlyThisPackageAsksForTheSuite(t *testing.T) {
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

func TestPlacesThatAskForTheSuiteAreFound(t *testing.T) {
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
