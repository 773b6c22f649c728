package docs

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	usesLine    = regexp.MustCompile(`(?m)^[ -]*uses:\s*(\S.*)$`)
	usesPinned  = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	npmInstall  = regexp.MustCompile(`(?m)^.*\bnpm (?:ci|i|install|add|update)\b.*$`)
	imageName   = regexp.MustCompile(`(?mi)^(?:FROM(?: --platform=\S+)? |ARG \w*IMAGE=|[ -]*image: *"?)([a-z0-9][^\s"$]*)"?(?:\s|$)|^\s*\w*Image\s*= *"([^"$]+:[^"$]+)"`)
	imageListed = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `[^|]+` \\|$")
	localImages = regexp.MustCompile(`^(scratch$|sse-soak/|soak-test/|localhost/)`)
)

// sources returns the files that can download or run third-party software, except results, tests and test data.
func sources(t *testing.T) []string {
	t.Helper()
	var out []string
	for name := range readTree(t).files {
		if strings.HasPrefix(name, "docs/results/") || strings.Contains(name, "/testdata/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		base := path.Base(name)
		switch path.Ext(name) {
		case ".yml", ".yaml", ".md", ".sh", ".tf", ".toml", ".go":
		default:
			if !strings.Contains(base, "Dockerfile") && base != "Makefile" && path.Dir(name) != ".ci" {
				continue
			}
		}
		if base != "CHANGELOG.md" && base != "Dockerfile.d" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func TestRepositoryHasNoBinaries(t *testing.T) {
	t.Parallel()
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Greater(t, len(names), 500)
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(root, name)); err != nil || !info.Mode().IsRegular() {
			continue // deleted without a commit, or a link
		}
		text := read(t, name)
		for format, magic := range map[string]string{"ELF": "\x7fELF", "Mach-O": "\xcf\xfa\xed\xfe", "PE": "MZ\x90\x00"} {
			require.False(t, strings.HasPrefix(text, magic), "%s is a program (%s); remove it from the commit", name, format)
		}
	}
}

func TestActionsArePinnedByCommit(t *testing.T) {
	t.Parallel()
	found := 0
	for _, name := range sources(t) {
		if !strings.HasSuffix(name, ".yml") && !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, m := range usesLine.FindAllStringSubmatch(read(t, name), -1) {
			if action, _, _ := strings.Cut(m[1], " #"); action == "./" || action == localAction {
				continue
			}
			found++
			require.Regexp(t, usesPinned, m[1], "%s: pin the action by its full commit, with the version as a comment", name)
		}
	}
	require.Greater(t, found, 10)
}

// retiredRunners maps each retired image of GitHub's runners to the day of its removal.
var retiredRunners = map[string]string{
	"macos-12": "2024-12-03", "macos-13": "2025-12-04", "macos-14": "2026-11-02", "ubuntu-20.04": "2025-04-15", "windows-2019": "2025-06-30",
}

// node24 maps each action to its first major version that runs on Node 24. GitHub removed Node 20 in September 2026.
var node24 = map[string]int{
	"actions/checkout": 5, "actions/setup-go": 6, "actions/setup-node": 5, "actions/upload-artifact": 6, "actions/download-artifact": 7,
	"actions/cache": 5, "actions/attest-build-provenance": 4, "hashicorp/setup-terraform": 4,
}

func TestWorkflowsUseSupportedRunnersAndActions(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`uses: ([\w-]+/[\w-]+)@[0-9a-f]{40} # v(\d+)\.`)
	found := 0
	for _, name := range sources(t) {
		if path.Ext(name) != ".yml" {
			continue
		}
		text := read(t, name)
		for image, day := range retiredRunners {
			require.NotRegexp(t, `(?m)(runs-on|machine): .*\b`+regexp.QuoteMeta(image)+`\b`, text, "%s: GitHub retired %s on %s", name, image, day)
		}
		for _, m := range version.FindAllStringSubmatch(text, -1) {
			minVersion, known := node24[m[1]]
			require.True(t, known, "%s: add the first version of %s on Node 24 to the table", name, m[1])
			major, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			require.GreaterOrEqual(t, major, minVersion, "%s: %s v%d runs on a version of Node that GitHub removed", name, m[1], major)
			found++
		}
	}
	require.Greater(t, found, 10)
}

func TestNpmIgnoresPackageScripts(t *testing.T) {
	t.Parallel()
	found := 0
	for _, name := range sources(t) {
		for _, line := range npmInstall.FindAllString(read(t, name), -1) {
			if strings.Contains(line, "--yes") { // apt-get install --yes npm
				continue
			}
			found++
			require.Contains(t, line, "--ignore-scripts", name)
		}
	}
	require.Positive(t, found)
}

// An image has a digest, or SECURITY.md lists it with the command that pins it.
func TestImagesArePinnedByDigest(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, m := range imageListed.FindAllStringSubmatch(read(t, "SECURITY.md"), -1) {
		listed[m[1]] = false
	}
	for _, name := range sources(t) {
		if path.Ext(name) == ".md" {
			continue
		}
		text := read(t, name)
		for _, m := range imageName.FindAllStringSubmatch(text, -1) {
			image := m[1] + m[2]
			if localImages.MatchString(image) || regexp.MustCompile(`(?m)^FROM .* AS `+regexp.QuoteMeta(image)+`$`).MatchString(text) {
				continue
			}
			if strings.Contains(image, "@") {
				require.Regexp(t, `:[\w.-]+@sha256:[0-9a-f]{64}$`, image, name)
				continue
			}
			require.Contains(t, listed, image, "%s: give the image a digest, or list it in SECURITY.md", name)
			listed[image] = true
		}
	}
	require.NotContains(t, slices.Collect(maps.Values(listed)), false, "SECURITY.md lists an image that nothing uses: %v", listed)
}
