package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// A replacement is a word that prose must not contain, with the correct word.
type replacement struct {
	correct string
	word    *regexp.Regexp
}

// replacements returns the words that prose must not contain, from the rules of Vale.
func replacements(t *testing.T) (out []replacement) {
	t.Helper()
	var rule struct{ Swap map[string]string }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "tools/vale/Soak/Words.yml")), &rule))
	require.NotEmpty(t, rule.Swap)
	for word, correct := range rule.Swap {
		out = append(out, replacement{correct, regexp.MustCompile(`(?i)(?:^|\W)(` + word + `)(?:\W|$)`)})
	}
	return out
}

// sentences calls use with each string literal of a file that has several words, except tags of fields and imports.
func sentences(t *testing.T, name string, use func(at token.Position, text string)) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, read(t, name), parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				break
			}
			text, err := strconv.Unquote(n.Value)
			require.NoError(t, err)
			if strings.Contains(strings.TrimSpace(text), " ") {
				use(files.Position(n.Pos()), text)
			}
		}
		return true
	})
}

// Messages, help and reports use the words that Vale requires of Markdown and comments.
func TestMessagesHaveNoPrivateWords(t *testing.T) {
	t.Parallel()
	banned := replacements(t)
	var findings []string
	for name := range readTree(t).files {
		folder, _, _ := strings.Cut(name, "/")
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || !slices.Contains([]string{"backend", "cmd", "internal", "k6", "nginx"}, folder) {
			continue
		}
		sentences(t, name, func(at token.Position, text string) {
			for _, entry := range banned {
				if found := entry.word.FindStringSubmatch(text); found != nil {
					findings = append(findings, at.String()+": "+strconv.Quote(found[1])+": "+entry.correct)
				}
			}
		})
	}
	slices.Sort(findings)
	require.Empty(t, strings.Join(findings, "\n"))
}
