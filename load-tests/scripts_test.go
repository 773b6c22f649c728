package scripts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/suite"
)

// The cache may contain scripts of another version, or scripts that a user has edited.
func TestCacheFolderRestoresScripts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	folder, err := CacheFolder()
	require.NoError(t, err)
	changed := filepath.Join(folder, "lib", "config.js")
	require.NoError(t, os.WriteFile(changed, []byte("throw 1"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(folder, "services", "nchan.js")))

	second, err := CacheFolder()
	require.NoError(t, err)
	require.Equal(t, folder, second)
	names := []string{"lib/config.js", "services/nchan.js", "types/index.d.ts"}
	for _, s := range append(suite.All(), suite.Default()) {
		name, err := filepath.Rel(Folder, filepath.Join(s.Script...))
		require.NoError(t, err)
		names = append(names, name)
	}
	for _, name := range names {
		want, err := os.ReadFile(filepath.FromSlash(name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
	}
}

// A container may have no home folder. The error names the variable to set.
func TestMissingCacheFolderNamesTheRemedy(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	_, err := CacheFolder()
	require.ErrorContains(t, err, "set XDG_CACHE_HOME")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	t.Setenv("XDG_CACHE_HOME", file)
	_, err = CacheFolder()
	require.ErrorContains(t, err, "set XDG_CACHE_HOME")
}
