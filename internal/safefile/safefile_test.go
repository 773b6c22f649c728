//go:build unix

package safefile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadAcceptsARegularFileUpToItsLimit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "verdict.json")
	_, err := Read(path, 5)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("hello"), 0o600))
	content, err := Read(path, 5)
	require.NoError(t, err)
	require.Equal(t, "hello", string(content))
	_, err = Read(path, 4)
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, "read "+path+": the file is too large: it must be at most ")
}

func TestReadRefusesFoldersLinksAndPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link, sub, pipe := filepath.Join(dir, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "sub"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(target, nil, 0o600))
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, os.Mkdir(sub, 0o700))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{link, sub, pipe, "/dev/zero"} {
		_, err := Read(path, Document)
		require.EqualError(t, err, "read "+path+": not a regular file; remove it")
	}
	nested := filepath.Join(dir, "latest") // soak itself creates links to folders
	require.NoError(t, os.Symlink(dir, nested))
	_, err := Read(filepath.Join(nested, "target"), Document)
	require.NoError(t, err)
}

// A file in /proc has size 0, so only reading reveals that it is too large.
func TestReadLimitsFilesOfUnknownSize(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(content), "\n") {
		t.Skip("there is no /proc")
	}
	_, err = Read("/proc/self/status", 10)
	require.ErrorIs(t, err, ErrTooLarge)
}

// A list of empty objects uses a hundred times its size in memory.
func TestJSONLimitsSizeAndValues(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "verdict.json")
	type run struct {
		Runners []struct{ Name, Host, Version, State string } `json:"runners"`
	}
	write := func(objects int) {
		require.NoError(t, os.WriteFile(path, []byte(`{"runners": [{"name": "a"}`+strings.Repeat(",{}", objects)+"]}"), 0o600))
	}
	var decoded run
	write(100)
	require.NoError(t, JSON(path, Verdict, &decoded))
	require.Len(t, decoded.Runners, 101)
	write(Verdict / 4)
	require.ErrorIs(t, JSON(path, Verdict, &decoded), ErrTooLarge)
	require.EqualError(t, JSON(path, Verdict, &decoded), "read "+path+": the file is too large: it must have at most 131072 values, got 2097152; move it away")
	write(Verdict / 2)
	require.EqualError(t, JSON(path, Verdict, &decoded), "read "+path+": the file is too large: it must be at most 8.0 MiB, got 12.0 MiB; move it away")
}
