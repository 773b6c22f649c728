//go:build e2e

// Package release tests the files of a release with the commands of docs/getting-started.md.
package release

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// maxTimeToVerdict is the maximum time for unpacking and a first run.
const maxTimeToVerdict = 90 * time.Second

// The programs in an archive need no file of the repository and no program of PATH. They run in an empty folder with an
// empty PATH.
func TestArchiveRunsFromAnEmptyFolder(t *testing.T) {
	t.Parallel()
	dist := buildRelease(t)
	base := "sse-soak_1.2.3-test_" + runtime.GOOS + "_" + runtime.GOARCH
	checkSums(t, dist)
	checkBill(t, filepath.Join(dist, base+".tar.gz.cdx.json"))

	start := time.Now()
	folder := t.TempDir()
	unpack(t, filepath.Join(dist, base+".tar.gz"), folder)
	empty := filepath.Join(folder, "empty")
	require.NoError(t, os.Mkdir(empty, 0o755))
	run := func(program string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), maxTimeToVerdict)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(folder, base, program), args...)
		cmd.Dir, cmd.Env = empty, []string{"PATH=", "HOME=" + filepath.Join(folder, "home")}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	output, err := run("soak", "run", "--connections", "100", "--seconds", "15", "--noop-interval", "1", "--testid", "first")
	require.NoError(t, err, output)
	require.Contains(t, output, "PASS: ")
	page, err := os.ReadFile(filepath.Join(empty, "results", "first", "report.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "uPlot", "the report must contain charts")
	duration := time.Since(start)
	t.Logf("from the archive to the verdict: %v", duration.Round(100*time.Millisecond))
	require.Less(t, duration, maxTimeToVerdict)

	for program, args := range map[string][]string{"soak": {"--version"}, "backend": {"--version"}} {
		output, err := run(program, args...)
		require.NoError(t, err, output)
		require.Contains(t, output, "v1.2.3-test")
	}
	output, err = run("soak", "scripts", "load-tests")
	require.NoError(t, err, output)
	output, err = run("k6", "inspect", "--env", "BACKEND_URL=http://127.0.0.1:1", filepath.Join("load-tests", "sse", "connectionTest.js"))
	require.NoError(t, err, output)
	_, err = run("soak", "scripts", "load-tests")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 64, exit.ExitCode(), "an existing folder must not be overwritten")

	for _, name := range []string{"LICENSE", "NOTICE", "LICENSES-OF-OTHERS", "README.md", "getting-started.md", "completions/soak.bash", "man/man1/soak-run.1"} {
		info, err := os.Stat(filepath.Join(folder, base, name))
		require.NoError(t, err)
		require.NotZero(t, info.Size(), name)
	}
	checkPrograms(t, filepath.Join(folder, base))
}

// buildRelease builds the release for this machine, with the lowest priority, so that other tests do not wait for the
// linker.
func buildRelease(t *testing.T) string {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command("nice", "-n", "19", "go", "run", "-C", "tools", "./release", "-root", "..", "-version", "v1.2.3-test", "-platforms", runtime.GOOS+"/"+runtime.GOARCH, "-out", dist)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return dist
}

func unpack(t *testing.T, archive, folder string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	decompressed, err := gzip.NewReader(f)
	require.NoError(t, err)
	for files := tar.NewReader(decompressed); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(h.Name), "the archive must contain only local paths, got %s", h.Name)
		path := filepath.Join(folder, h.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, h.FileInfo().Mode())
		require.NoError(t, err)
		_, err = io.Copy(out, files)
		require.NoError(t, errors.Join(err, out.Close()))
	}
}

// checkSums asserts that SHA256SUMS has the correct checksum of each file.
func checkSums(t *testing.T, dist string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	require.NoError(t, err)
	var names []string
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, "each line must have a checksum and a name, got %q", line)
		content, err := os.ReadFile(filepath.Join(dist, name))
		require.NoError(t, err)
		hash := sha256.Sum256(content)
		require.Equal(t, hex.EncodeToString(hash[:]), sum, name)
		names = append(names, name)
	}
	entries, err := os.ReadDir(dist)
	require.NoError(t, err)
	for _, e := range entries {
		if !e.IsDir() && e.Name() != "SHA256SUMS" {
			require.Contains(t, names, e.Name())
		}
	}
}

// checkBill asserts that a bill of materials lists the project and its dependencies.
func checkBill(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var bill struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Purl string }
	}
	require.NoError(t, json.Unmarshal(text, &bill))
	require.Equal(t, "CycloneDX", bill.BOMFormat)
	require.Equal(t, "v1.2.3-test", bill.Metadata.Component.Version)
	var names []string
	for _, c := range bill.Components {
		names = append(names, c.Name)
		require.True(t, strings.HasPrefix(c.Purl, "pkg:"), c.Purl)
	}
	require.Subset(t, names, []string{"std", "go.k6.io/k6/v2", "github.com/spf13/cobra", "github.com/prometheus/client_golang", "uplot"})
}

// checkPrograms asserts that the programs do not contain the path of the repository on the build machine. On Linux,
// they must link no library of the system and contain no symbols.
func checkPrograms(t *testing.T, folder string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	for _, name := range []string{"soak", "k6", "backend"} {
		path := filepath.Join(folder, name)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(content), root, name)
		if runtime.GOOS != "linux" {
			continue
		}
		program, err := elf.Open(path)
		require.NoError(t, err)
		libraries, err := program.ImportedLibraries()
		require.NoError(t, err)
		require.Empty(t, libraries, name)
		require.Nil(t, program.Section(".symtab"), name)
		require.NoError(t, program.Close())
	}
}
