package docs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
