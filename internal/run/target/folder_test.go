package target

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Not parallel, because it sets the environment. A soak that was killed cannot remove its folder.
func TestNextTargetRemovesOrphanedFolders(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	orphan, err := newFolder()
	require.NoError(t, err)
	require.NoError(t, orphan.lock.Close(), "as the kernel does for a process that was killed")
	require.NoError(t, os.WriteFile(filepath.Join(orphan.path, "nginx.conf"), nil, 0o600))

	foreign := filepath.Join(parent, "soak-notes")
	require.NoError(t, os.Mkdir(foreign, 0o700))
	first, err := newFolder()
	require.NoError(t, err)
	require.NoDirExists(t, orphan.path)

	second, err := newFolder()
	require.NoError(t, err)
	require.DirExists(t, first.path, "its owner is alive")
	require.DirExists(t, foreign, "another program owns it")
	second.remove()
	first.remove()
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1, "only the folder of another program")
}

// macOS has 127.0.0.1 only. An address of a network that does not exist is as unknown here.
func TestFreePortUsesALocalAddress(t *testing.T) {
	t.Parallel()
	address, err := freePortOf("fe80::1%none", "127.0.0.1")
	require.NoError(t, err)
	require.Regexp(t, `^127\.0\.0\.1:\d+$`, address)
	_, err = freePortOf("fe80::1%none", "fe80::2%none")
	require.ErrorContains(t, err, "find a free port")
}
