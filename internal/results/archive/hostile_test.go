package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

// withChecksum adds a file with its checksum, as the author of a hostile archive can.
func withChecksum(entries []entry, name, text string) []entry {
	entries[0].text += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(text)), name)
	return append(entries, entry{tar.Header{Name: "run-1/" + name, Mode: 0o644}, text})
}

func entryBySuffix(entries []entry, suffix string) *entry {
	return &entries[slices.IndexFunc(entries, func(e entry) bool { return strings.HasSuffix(e.Name, suffix) })]
}

// replaceText replaces a text in archive.json, and updates the checksum of the file.
func replaceText(entries []entry, from, to string) []entry {
	contents := entryBySuffix(entries, contentsFile)
	old := contents.text
	contents.text = strings.Replace(old, from, to, 1)
	entries[0].text = strings.ReplaceAll(entries[0].text, fmt.Sprintf("%x", sha256.Sum256([]byte(old))), fmt.Sprintf("%x", sha256.Sum256([]byte(contents.text))))
	return entries
}

func openEntries(t *testing.T, entries []entry, dir string) (Contents, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hostile.tar.gz")
	require.NoError(t, os.WriteFile(file, packEntries(t, entries), 0o600))
	return Open(t.Context(), file, dir)
}

func TestForgedLinesAreJoined(t *testing.T) {
	t.Parallel()
	good, _ := makeArchive(t, Source{Folder: folder(t, nil)})
	c, err := openEntries(t, replaceText(entriesOf(t, good), `"verdict": "pass"`, `"verdict": "pass\nsecrets none", "redacted": ["a\nb"]`), filepath.Join(t.TempDir(), "to"))
	require.NoError(t, err)
	require.Equal(t, "pass secrets none", c.Verdict)
	require.Equal(t, []string{"a b"}, c.Redacted)
}

func TestInvalidArchivesAreRejected(t *testing.T) {
	t.Parallel()
	good, _ := makeArchive(t, Source{Folder: folder(t, nil)})
	for name, c := range map[string]struct {
		change func(e []entry) []entry
		want   string
	}{
		"a name outside of the folder": {func(e []entry) []entry { return withChecksum(e, "../../escaped", "x") }, "is not a clean name inside the folder"},
		"an absolute name": {func(e []entry) []entry {
			return append(e, entry{tar.Header{Name: "/tmp/escaped", Mode: 0o644}, "x"})
		}, "is not a clean name inside the folder"},
		"a link": {func(e []entry) []entry {
			return append(e, entry{tar.Header{Name: "run-1/link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, ""})
		}, "is not a regular file"},
		"a device": {func(e []entry) []entry {
			return append(e, entry{tar.Header{Name: "run-1/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, ""})
		}, "is not a regular file"},
		"a wrong checksum": {func(e []entry) []entry {
			entryBySuffix(e, "verdict.json").text = `{"verdict": "pass"}`
			return e
		}, "verdict.json does not match its checksum in SHA256SUMS"},
		"a file that is missing": {func(e []entry) []entry {
			return slices.DeleteFunc(e, func(e entry) bool { return strings.HasSuffix(e.Name, "run.json") })
		}, "it lacks 1 file that SHA256SUMS lists (first: run.json)"},
		"a file that is not listed": {func(e []entry) []entry {
			return append(e, entry{tar.Header{Name: "run-1/more", Mode: 0o644}, "x"})
		}, `"run-1/more" is not in SHA256SUMS`},
		"a repeated file":                 {func(e []entry) []entry { return append(e, *entryBySuffix(e, "run.json")) }, "is in the archive twice"},
		"a second folder":                 {func(e []entry) []entry { e[1].Name = "other/" + filepath.Base(e[1].Name); return e }, "is not in SHA256SUMS"},
		"malformed checksums":             {func(e []entry) []entry { e[0].text = "abc  run.json\n"; return e }, "has an invalid line"},
		"missing checksums":               {func(e []entry) []entry { return e[1:] }, "its first file must be SHA256SUMS"},
		"a name with a control character": {func(e []entry) []entry { return withChecksum(e, "\u009b31m.json", "x") }, "has an invalid line"},
		"a test id of two lines": {func(e []entry) []entry { return replaceText(e, `"testid": "run-1"`, `"testid": "run-1\nverdict pass"`) },
			`names the run "run-1\nverdict pass"`},
		"an empty archive": {func([]entry) []entry { return nil }, "it is empty"},
		"a bomb":           {func(e []entry) []entry { return withChecksum(e, "zeros", strings.Repeat("\x00", baseBytes+16<<20)) }, "would exceed the limit of all files: 16 MiB plus 100 times the size of the archive, at most 16 GiB"},
		"a later format": {func(e []entry) []entry {
			return replaceText(e, `"schema": 1`, `"schema": 2`)
		}, "version 2, and this soak reads versions up to 1"},
		"a format without a version": {func(e []entry) []entry {
			return replaceText(e, `"schema": 1`, `"schema": 0`)
		}, "archive.json must have the version of its format, got 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := openEntries(t, c.change(entriesOf(t, good)), filepath.Join(dir, "in", "to"))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, " (none of its files were kept): ")
			assert.NoFileExists(t, filepath.Join(dir, "escaped"))
			assert.NoFileExists(t, "/tmp/escaped")
			assert.NoDirExists(t, filepath.Join(dir, "in", "to"))
		})
	}
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	for _, damaged := range [][]byte{nil, []byte("no gzip"), text[:len(text)/2], text[:len(text)-4]} {
		dir := t.TempDir()
		file := filepath.Join(dir, "damaged.tar.gz")
		require.NoError(t, os.WriteFile(file, damaged, 0o600))
		_, err := Open(t.Context(), file, filepath.Join(dir, "to"))
		require.ErrorContains(t, err, "unpack "+file+" (none of its files were kept): ", "%d bytes", len(damaged))
	}
}

func TestOpenOverwritesNothing(t *testing.T) {
	t.Parallel()
	file, _ := makeArchive(t, Source{Folder: folder(t, nil)})
	dir := t.TempDir()
	existing := filepath.Join(dir, "mine")
	require.NoError(t, os.WriteFile(existing, nil, 0o600))
	_, err := Open(t.Context(), file, dir)
	require.ErrorContains(t, err, "is not empty")
	require.FileExists(t, existing)
	_, err = Open(t.Context(), filepath.Join(dir, "none"), filepath.Join(dir, "to"))
	require.ErrorContains(t, err, "there is no archive")
}

func TestOpenAcceptsEveryArchiveFromMake(t *testing.T) {
	t.Parallel()
	file, c := makeArchive(t, Source{Folder: folder(t, map[string]string{
		"bidi\u202e.json": "{}", "c1\u009b.pem": "", "tab\t.json": "{}", "two\nlines.json": "{}", `back\slash.json`: "{}", "\xff.json": "{}", "ü ü.json": "{}", "-rf.json": "{}",
		"k6.log": strings.Repeat("level=warning msg=\"Request Failed\" error=\"connection refused\"\n", baseBytes/58), // packs to 1/300 of its size
	})})
	files, second := archiveFiles(t, file)
	require.Equal(t, c, second)
	require.Contains(t, files, "ü ü.json")
	require.Contains(t, files, "-rf.json")
	require.Contains(t, fmt.Sprintf("%s", c.Omitted), `"two\nlines.json" has a name that is not valid on every system`)
	require.Len(t, c.Omitted, 6)
	for name, text := range files {
		require.Equal(t, format.Escape(text), text, name)
	}
}

func TestOpenIsInterruptible(t *testing.T) {
	t.Parallel()
	file, _ := makeArchive(t, Source{Folder: folder(t, nil)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "to")
	_, err := Open(ctx, file, dir)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "not a valid archive")
	require.NoDirExists(t, dir)

	pipe := filepath.Join(t.TempDir(), "pipe") // without a writer
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, t.TempDir()} {
		_, err = Open(t.Context(), path, dir)
		require.ErrorContains(t, err, path+" must be a regular file")
	}
}

// plantFiles returns the folder of a run in which another user put large files.
func plantFiles(t *testing.T, size int64) string {
	t.Helper()
	run := folder(t, map[string]string{"k6.log": ""})
	require.NoError(t, os.Truncate(filepath.Join(run, "k6.log"), size))
	out, err := os.Create(filepath.Join(run, "bomb.json.gz"))
	require.NoError(t, err)
	zip := gzip.NewWriter(out)
	_, err = io.CopyN(zip, zeros{}, size)
	require.NoError(t, errors.Join(err, zip.Close(), out.Close()))
	return run
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// maxHeap returns the maximum heap, in bytes, during a call of do.
func maxHeap(do func()) (peak uint64) {
	done, result := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapAlloc)
			select {
			case <-done:
				result <- peak
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	return <-result
}

func TestLargeFilesCostLittleMemory(t *testing.T) { //nolint:paralleltest // memory of the process
	run := plantFiles(t, 34<<20)
	peak := maxHeap(func() {
		_, c := makeArchive(t, Source{Folder: run, Secrets: NewSecrets([]string{"BACKEND_TOKEN=0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d"}, "")})
		require.Empty(t, c.Omitted)
	})
	require.Less(t, peak, uint64(32<<20))
}

func TestLargeFileIsOmitted(t *testing.T) {
	t.Parallel()
	run := folder(t, map[string]string{"k6.log": ""})
	require.NoError(t, os.Truncate(filepath.Join(run, "k6.log"), maxFile+64<<20))
	_, c := makeArchive(t, Source{Folder: run})
	require.Contains(t, c.Omitted, "k6.log was left out: the file is too large: it must be at most 1.00 GiB, got 1.06 GiB; move it away")
	_, err := io.Copy(io.Discard, &limitedReader{from: zeros{}, remaining: 1 << 20})
	require.ErrorIs(t, err, errUnpackedTooLarge)
}

func TestMakeIsInterruptible(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "run.tar.gz")
	_, err := Make(ctx, Source{Folder: folder(t, nil), SkipReason: "it is off"}, file)
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, file)
}

func TestLargeContentsFileIsRejected(t *testing.T) {
	t.Parallel()
	good, _ := makeArchive(t, Source{Folder: folder(t, nil)})
	entries := replaceText(entriesOf(t, good), `"schema": 1`, `"left_out": [`+strings.Repeat(`"",`, maxContents)+`""], "schema": 1`)
	_, err := openEntries(t, entries, filepath.Join(t.TempDir(), "to"))
	require.ErrorContains(t, err, "archive.json must have at most 4.0 MiB, got 12.0 MiB")
}

func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/report.md")
	require.NoError(t, err)
	for _, row := range []string{
		fmt.Sprintf("| %d GiB per file", int64(maxFile)>>30),
		fmt.Sprintf("| %d MiB for a `verdict.json`", int64(safefile.Verdict)>>20),
		fmt.Sprintf("| %d MiB for `archive.json`", maxContents>>20),
		fmt.Sprintf("| %d GiB for all files", int64(maxBytes)>>30),
		fmt.Sprintf("more than %d times its size", maxRatio),
	} {
		require.Contains(t, string(page), row)
	}
}
