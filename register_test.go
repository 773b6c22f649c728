package ssesoak

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/ext"
)

const module = "github.com/sse-soak/sse-soak"

func TestRootRegistersTheExtension(t *testing.T) {
	var registered []string
	for _, e := range ext.GetAll() {
		registered = append(registered, e.Name+" "+e.Type.String())
	}
	require.ElementsMatch(t, []string{"k6/x/handshake js", "k6/x/requests js", "k6/x/soak js", "soak output"}, registered)
}

// A build of k6 with this extension compiles all packages that the root package imports. Packages that only the command
// soak needs must not be among them.
func TestExtensionDoesNotImportTheCommandLine(t *testing.T) {
	for _, pkg := range strings.Fields(output(t, ".", "go", "list", "-deps", ".")) {
		for _, foreign := range []string{
			module + "/backend", module + "/cmd", module + "/internal/report", module + "/internal/results", module + "/internal/run",
			module + "/internal/suite", module + "/internal/verdict", "k8s.io/", "sigs.k8s.io/",
		} {
			require.False(t, strings.HasPrefix(pkg, foreign), "the extension imports %s", pkg)
		}
	}
}

// The test builds a module that requires this one and k6, as `xk6 build --with` does. The replace directive stands in
// for a release.
func TestMainOfAnotherModuleHasTheExtension(t *testing.T) {
	if testing.Short() {
		t.Skip("linking k6 takes too long with -short")
	}
	root, err := os.Getwd()
	require.NoError(t, err)
	version := strings.TrimSpace(output(t, ".", "go", "list", "-m", "-f", "{{.Version}}", "go.k6.io/k6/v2"))
	sums, err := os.ReadFile("go.sum")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module k6\n\ngo 1.26.0\n\nrequire (\n\tgo.k6.io/k6/v2 " + version + "\n\t" + module + " v0.0.0\n)\n\n" +
			"replace " + module + " => " + root + "\n",
		"go.sum": string(sums),
		// Another extension of the same binary may register k6/x/sse, as xk6-sse does.
		"main.go": `package main

import (
	k6cmd "go.k6.io/k6/v2/cmd"
	"go.k6.io/k6/v2/js/modules"

	_ "` + module + `"
)

func main() {
	modules.Register("k6/x/sse", struct{}{})
	k6cmd.Execute()
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	output(t, dir, "go", "build", "-mod=mod", "-trimpath", "-o", "k6", ".")
	extensions := output(t, dir, filepath.Join(dir, "k6"), "version")
	for _, name := range []string{"k6/x/handshake [js]", "k6/x/requests [js]", "k6/x/soak [js]", "soak [output]"} {
		require.Contains(t, extensions, ", "+name)
	}
}

// output runs a command and returns its output. Its environment matches `make build`, so that go reuses the build
// cache.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}
