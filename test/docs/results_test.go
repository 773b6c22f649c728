package docs

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// infoHeading matches the heading of the section about the run, which internal/report writes. Older pages have
// the second form.
var infoHeading = regexp.MustCompile(`(?m)^## (Command and versions|What ran)$`)

// infoRow matches a row of that section.
var infoRow = regexp.MustCompile(`(?m)^\| \*\*(\w+)\*\* \| (\S.*) \|$`)

// overviews are the files of docs/results that need no information about a run. They summarize runs in subfolders,
// except terraform-plan.txt, which a test compares with the plan of each commit.
var overviews = []string{"README.md", "gateways-compared.md", "handshake.md", "http-suites.md", "originals.md", "services-compared.md", "streams.md", "terraform-plan.txt"}

// missingRunInfo lists the information about the run that a page of results lacks.
func missingRunInfo(text string) (missing []string) {
	heading := infoHeading.FindStringIndex(text)
	if heading == nil {
		return []string{"the section Command and versions"}
	}
	section, _, _ := strings.Cut(text[heading[1]:], "\n## ")
	values := map[string]string{}
	for _, row := range infoRow.FindAllStringSubmatch(section, -1) {
		values[row[1]] = row[2]
	}
	for _, name := range []string{"command", "commit", "versions", "machine", "system"} {
		if values[name] == "" {
			missing = append(missing, name)
		}
	}
	for _, program := range []string{"soak", "k6", "Go", "nginx"} {
		if !slices.ContainsFunc(strings.Split(values["versions"], ", "), func(v string) bool { return strings.HasPrefix(v, program+" ") }) {
			missing = append(missing, "version of "+program)
		}
	}
	return missing
}

// Each page of results has the command, commit, versions and machine of its run, or states that they were not recorded.
func TestResultsHaveRunInfo(t *testing.T) {
	t.Parallel()
	const results = "docs/results"
	all := readTree(t).files
	pageOf := map[string]string{"verdict.json": "report.md", "campaign.json": "campaign.md", "services.json": "services.md", "gateways.json": "gateways.md"}
	pages := 0
	for name := range all {
		folder, base := path.Split(name)
		if !strings.HasPrefix(name, results+"/") || folder == results+"/" && slices.Contains(overviews, base) {
			continue
		}
		if folder != results+"/" && path.Ext(base) != "" {
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Values(pageOf)), func(page string) bool { return all[folder+page] }), "%s must have a page next to it", name)
		}
		if page := pageOf[base]; page != "" {
			require.True(t, all[folder+page], "%s must have %s next to it", name, page)
		}
		if slices.Contains([]string{".md", ".txt"}, path.Ext(base)) {
			pages++
			require.Empty(t, missingRunInfo(read(t, name)), "%s must contain this information", name)
		}
	}
	require.Greater(t, pages, 50)
}

func TestResultsWithoutRunInfoAreFound(t *testing.T) {
	t.Parallel()
	const complete = "# Soak\n\n## Command and versions\n\n| | |\n|---|---|\n| **command** | make soak |\n| **commit** | not recorded |\n| **versions** | soak v1, k6 v2.2.0, Go 1.26.8, nginx none |\n" +
		"| **machine** | 2 cores |\n| **system** | debian 12 |\n"
	require.Empty(t, missingRunInfo(complete))
	require.Empty(t, missingRunInfo(strings.Replace(complete, "Command and versions", "What ran", 1)))
	require.Equal(t, []string{"the section Command and versions"}, missingRunInfo("# Soak\n"))
	require.Equal(t, []string{"commit"}, missingRunInfo(strings.Replace(complete, "| **commit** | not recorded |\n", "", 1)))
	require.Equal(t, []string{"commit"}, missingRunInfo(strings.Replace(complete, "not recorded", "", 1)))
	require.Equal(t, []string{"version of Go"}, missingRunInfo(strings.Replace(complete, "Go 1.26.8, ", "", 1)))
}
