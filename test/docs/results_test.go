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

// ranRow is a row of the section "What ran", as internal/report writes it.
var ranRow = regexp.MustCompile(`(?m)^\| \*\*(\w+)\*\* \| (\S.*) \|$`)

// overviews of docs/results are about runs that lie in folders, and terraform-plan.txt is none: a test compares it with
// what each commit plans.
var overviews = []string{"README.md", "handshake.md", "http-suites.md", "originals.md", "services-compared.md", "streams.md", "terraform-plan.txt"}

// whatRan lists what a page of results does not say of what made them.
func whatRan(text string) (missing []string) {
	_, section, found := strings.Cut(text, "\n## What ran\n")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]string{}
	for _, row := range ranRow.FindAllStringSubmatch(section, -1) {
		said[row[1]] = row[2]
	}
	if !found {
		return []string{"the section What ran"}
	}
	for _, name := range []string{"command", "commit", "versions", "machine", "system"} {
		if said[name] == "" {
			missing = append(missing, name)
		}
	}
	for _, program := range []string{"soak", "k6", "Go", "nginx"} {
		if !slices.ContainsFunc(strings.Split(said["versions"], ", "), func(v string) bool { return strings.HasPrefix(v, program+" ") }) {
			missing = append(missing, "version of "+program)
		}
	}
	return missing
}

// A reader of a figure finds its origin a year later, or that it was not recorded.
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
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Values(pageOf)), func(page string) bool { return all[folder+page] }), "%s has no page beside it", name)
		}
		if beside := pageOf[base]; beside != "" {
			require.True(t, all[folder+beside], "%s has no %s beside it", name, beside)
		}
		if slices.Contains([]string{".md", ".txt"}, path.Ext(base)) {
			pages++
			require.Empty(t, whatRan(read(t, name)), "%s does not say", name)
		}
	}
	require.Greater(t, pages, 50)
}

// The check itself: what is missing is found.
func TestResultsWithoutRunInfoAreFound(t *testing.T) {
	t.Parallel()
	const whole = "# Soak\n\n## What ran\n\n| | |\n|---|---|\n| **command** | make soak |\n| **commit** | not recorded |\n| **versions** | soak v1, k6 v2.2.0, Go 1.26.8, nginx none |\n" +
		"| **machine** | 2 cores |\n| **system** | debian 12 |\n"
	require.Empty(t, whatRan(whole))
	require.Equal(t, []string{"the section What ran"}, whatRan("# Soak\n"))
	require.Equal(t, []string{"commit"}, whatRan(strings.Replace(whole, "| **commit** | not recorded |\n", "", 1)))
	require.Equal(t, []string{"commit"}, whatRan(strings.Replace(whole, "not recorded", "", 1)))
	require.Equal(t, []string{"version of Go"}, whatRan(strings.Replace(whole, "Go 1.26.8, ", "", 1)))
}
