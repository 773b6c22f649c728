package docs

import (
	"fmt"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
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

func subjects(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join(root, ".ci/subjects"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), script, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestCommitSubjects(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clone")
	gitIn(t, ".", "init", "--quiet", "--initial-branch=main", dir)
	commit := func(subject string) {
		gitIn(t, dir, "commit", "--quiet", "--allow-empty", "--message", subject)
	}
	commit("An old subject")
	gitIn(t, dir, "update-ref", "refs/remotes/origin/main", "HEAD")
	commit("ledger: count gaps after a reconnect")
	commit("ledger,shard: read the rest of a file")
	commit(`Revert "An old subject"`)
	out, err := subjects(t, dir)
	require.NoError(t, err, out)

	findings := []string{"Count gaps", "ledger: Count gaps", "ledger: fixed a gap", "ledger: count gaps.", "ledger, shard: read the rest of a file", "ledger: " + strings.Repeat("x", 53)}
	for _, subject := range findings {
		commit(subject)
	}
	out, err = subjects(t, dir)
	require.Error(t, err)
	require.Equal(t, len(findings), strings.Count(out, "the subject of a commit"), out)

	commit("ledger: count gaps")
	out, err = subjects(t, dir, "0000000000000000000000000000000000000000")
	require.NoError(t, err, "with an unknown base, as in a shallow clone, only the last commit must be checked: %s", out)

	shallow := filepath.Join(t.TempDir(), "shallow")
	gitIn(t, ".", "clone", "--quiet", "--depth=1", "file://"+dir, shallow)
	out, err = subjects(t, shallow)
	require.NoError(t, err, out)

	out, err = subjects(t, t.TempDir())
	require.NoError(t, err, "outside a clone: %s", out)
}

var (
	namedTest   = regexp.MustCompile("`(\\w+|…)?(?:/(\\w+))?`")
	namedFolder = regexp.MustCompile("\\(`([\\w/]+?)/?`\\)")
)

// missingTests lists the tests that the tables of reliability.md name, but the repository does not have. A test must be
// in test/e2e, or in a folder that its cell or the heading of its column names. …/name and /name are cases of the
// previous test.
func (r tree) missingTests(t *testing.T, page string) (out []string) {
	t.Helper()
	var columnFolders []string
	var files []string
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		cell := cells[len(cells)-1]
		if len(cells) < 3 {
			continue
		}
		folders := []string{"test/e2e"}
		for _, f := range namedFolder.FindAllStringSubmatch(cell, -1) {
			folders = append(folders, f[1], "internal/"+f[1])
		}
		if strings.HasPrefix(cell, "test") {
			columnFolders = folders
			continue
		}
		for _, match := range namedTest.FindAllStringSubmatch(namedFolder.ReplaceAllString(cell, ""), -1) {
			if name := match[1]; name != "" && name != "…" {
				files = slices.DeleteFunc(slices.Clone(r.tests[name]), func(f string) bool { return !slices.Contains(append(folders, columnFolders...), path.Dir(f)) })
			}
			has := func(f string) bool { // go test replaces the spaces in names of cases
				return match[2] == "" || strings.Contains(strings.ReplaceAll(read(t, f), " ", "_"), `"`+match[2]+`"`)
			}
			if !slices.ContainsFunc(files, has) {
				out = append(out, strings.Trim(match[0], "`"))
			}
		}
	}
	return out
}

func TestReliabilityTestsExist(t *testing.T) {
	t.Parallel()
	all := readTree(t)
	matrix, _, _ := strings.Cut(read(t, "docs/reliability.md"), "\n## Campaign\n")
	require.Empty(t, all.missingTests(t, matrix))

	const page = "| fault | verdict | test |\n| a | fail | `TestReliabilityTestsExist`%s |\n"
	require.Empty(t, all.missingTests(t, fmt.Sprintf(page, " (`test/docs`)")))
	require.Empty(t, all.missingTests(t, strings.Replace(fmt.Sprintf(page, ""), "test |", "test (`test/docs/`) |", 1)))
	require.Len(t, all.missingTests(t, fmt.Sprintf(page, "")), 1, "the test must be in the folder of the column")
	require.Len(t, all.missingTests(t, fmt.Sprintf(page, ", `/no_such_case` (`test/docs`)")), 1)
}
