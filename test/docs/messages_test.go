package docs

import (
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
		literals(t, name, func(at token.Position, text string) {
			if !strings.Contains(strings.TrimSpace(text), " ") {
				return // not a sentence
			}
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
