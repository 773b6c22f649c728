package docs

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/sse-soak/sse-soak/test/untested"
)

// A ciStep is a step of a workflow or of an action.
type ciStep struct {
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Uses  string            `yaml:"uses"`
	Run   string            `yaml:"run"`
	Shell string            `yaml:"shell"`
	Env   map[string]string `yaml:"env"`
	With  map[string]string `yaml:"with"`
	Dir   string            `yaml:"working-directory"`
}

// A ciAction is the content of action.yml.
type ciAction struct {
	Name, Description string
	Branding          map[string]string
	Inputs            map[string]struct {
		Description string
		Default     *string
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []ciStep
	}
}

// unmarshalStrict reads a YAML file, and rejects unknown keys.
func unmarshalStrict(t *testing.T, name string, target any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, name)))
	d.KnownFields(true)
	require.NoError(t, d.Decode(target), name)
}

var (
	expression  = regexp.MustCompile(`\$\{\{(.*?)\}\}`)
	inputOf     = regexp.MustCompile(`inputs\.([a-z]+)`)
	outputOf    = regexp.MustCompile(`steps\.([a-z]+)\.outputs\.([a-z-]+)`)
	commitPin   = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
	ciFlag      = regexp.MustCompile(`(?m)(?:^| )--([a-z-]+)`)
	localAction = "sse-soak/sse-soak@COMMIT"
	helpOfRun   = "cmd/soak/testdata/help/run-all.txt"
	ciOutputs   = []string{"verdict", "testid", "report"} // written by internal/ci for `--github`
)

func TestActionIsComplete(t *testing.T) {
	t.Parallel()
	var a ciAction
	unmarshalStrict(t, "action.yml", &a)
	require.Equal(t, "composite", a.Runs.Using)
	steps, references := map[string]ciStep{}, map[string]bool{}
	var scripts []string
	for _, s := range a.Runs.Steps {
		steps[s.ID] = s
		require.NotEqual(t, s.Uses == "", s.Run == "", "a step must have either uses or run: %+v", s)
		if s.Uses != "" {
			require.Regexp(t, commitPin, s.Uses)
		} else {
			require.Equal(t, "bash", s.Shell, "a step of an action must set its shell: %s", s.Run)
			scripts = append(scripts, s.Run)
		}
		require.NotRegexp(t, expression, s.Run, "an input must not be executed as a command")
		text := strings.Join(slices.Concat([]string{s.If, s.Dir}, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.With))), "\n")
		for _, in := range inputOf.FindAllStringSubmatch(text, -1) {
			references[in[1]] = true
		}
		for _, out := range outputOf.FindAllStringSubmatch(text, -1) {
			require.Contains(t, steps, out[1], "the output must come from an earlier step")
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(a.Inputs)), slices.Collect(maps.Keys(references)))
	for name, in := range a.Inputs {
		require.NotEmpty(t, in.Description, name)
		require.NotNil(t, in.Default, name)
	}
	require.ElementsMatch(t, ciOutputs, slices.Collect(maps.Keys(a.Outputs)))
	for name, out := range a.Outputs {
		require.Equal(t, "${{ steps.soak.outputs."+name+" }}", out.Value)
	}
	requireFlags(t, steps["soak"].Run)
	checkScripts(t, scripts)
}

// requireFlags asserts that `soak run` has the flags of a script.
func requireFlags(t *testing.T, script string) {
	t.Helper()
	help := read(t, helpOfRun)
	flags := ciFlag.FindAllStringSubmatch(script, -1)
	require.NotEmpty(t, flags)
	for _, flag := range flags {
		require.Contains(t, help, " --"+flag[1]+" ", "soak run has no --%s", flag[1])
	}
}

// The action passes each line of its input args to soak as one argument, and does not evaluate the line.
func TestActionPassesArguments(t *testing.T) {
	t.Parallel()
	var a ciAction
	unmarshalStrict(t, "action.yml", &a)
	script := a.Runs.Steps[slices.IndexFunc(a.Runs.Steps, func(s ciStep) bool { return s.ID == "soak" })].Run
	fake := filepath.Join(t.TempDir(), "soak")
	require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\nprintf '[%s]' \"$@\"\nexit 2\n"), 0o700)) // #nosec G306 -- the test executes it
	for args, want := range map[string]string{
		"": "[run][storm][--github][--junit][a b.xml]",
		"--connections=200\n\n  --at=60s deploy: echo \"$HOME\"; rm -rf * \t\n--prefix=$(id)`id`\r\n": "[run][storm][--github][--junit][a b.xml][--connections=200][--at=60s deploy: echo \"$HOME\"; rm -rf *][--prefix=$(id)`id`]",
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
		cmd.Env = append(os.Environ(), "SOAK="+fake, "COMMAND=run storm", "ARGS="+args, "JUNIT=a b.xml")
		output, err := cmd.CombinedOutput()
		require.Equal(t, want, string(output))
		require.ErrorContains(t, err, "exit status 2", "the step must exit with the code of soak")
	}
}

func TestWorkflowMatchesTheAction(t *testing.T) {
	t.Parallel()
	var w struct {
		Name        string
		On          map[string]any
		Permissions map[string]string
		Jobs        map[string]struct {
			RunsOn  string `yaml:"runs-on"`
			Timeout int    `yaml:"timeout-minutes"`
			Steps   []ciStep
		}
	}
	unmarshalStrict(t, "examples/ci/github.yml", &w)
	var a ciAction
	unmarshalStrict(t, "action.yml", &a)
	require.Equal(t, map[string]string{"contents": "read"}, w.Permissions)
	found := false
	for _, s := range w.Jobs["soak"].Steps {
		for _, out := range outputOf.FindAllStringSubmatch(s.If+s.Run, -1) {
			require.Contains(t, a.Outputs, out[2])
		}
		if s.Uses != localAction {
			if s.Uses != "" {
				require.Regexp(t, commitPin, s.Uses)
			}
			continue
		}
		found = true
		for name := range s.With {
			require.Contains(t, a.Inputs, name)
		}
		requireFlags(t, s.With["args"])
		for line := range strings.Lines(s.With["args"]) {
			require.Regexp(t, `^--[a-z-]+=.`, line, "each line must have one argument")
		}
	}
	require.True(t, found, "the workflow must use the action")
}

func TestGitLabArtifacts(t *testing.T) {
	t.Parallel()
	var jobs map[string]struct {
		Stage, Image, Timeout string
		Services              []struct{ Name, Alias string }
		Variables             map[string]string
		Cache                 struct {
			Key   string
			Paths []string
		}
		Before    []string `yaml:"before_script"`
		Script    []string
		Artifacts struct {
			When           string
			Expire         string `yaml:"expire_in"`
			Paths, Exclude []string
			Reports        map[string]string
		}
	}
	unmarshalStrict(t, "examples/ci/gitlab.yml", &jobs)
	job := jobs["soak"]
	require.Equal(t, "always", job.Artifacts.When, "artifacts must be kept for failed runs, too")
	script := strings.Join(job.Script, "\n")
	require.Contains(t, script, " --junit "+job.Artifacts.Reports["junit"]+" ")
	requireFlags(t, script)
	require.Regexp(t, `^golang:\d+\.\d+\.\d+-`, job.Image)
	require.Contains(t, read(t, ".github/workflows/ci.yml"), "go-version: "+strings.Split(strings.TrimPrefix(job.Image, "golang:"), "-")[0])
	require.Contains(t, job.Variables["BACKEND_URL"], "://"+job.Services[0].Alias+":")
	checkScripts(t, append(job.Before, job.Script...))
}

func checkScripts(t *testing.T, all []string) {
	t.Helper()
	if _, err := exec.LookPath("shellcheck"); err != nil {
		untested.SkipMissing(t, "scripts in YAML, because shellcheck is not installed; run `apt-get install shellcheck`")
	}
	for _, script := range all {
		cmd := exec.CommandContext(t.Context(), "shellcheck", "--shell=bash", "--exclude=SC2153", "-") // shellcheck does not see the variables of the step
		cmd.Stdin = strings.NewReader(script)
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", script, output)
	}
}

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
