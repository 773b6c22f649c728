package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The user may have bin/ of a clone in PATH, and changed scripts in the working directory (soak scripts).
func TestScriptOfTheWorkingDirectoryHasPrecedence(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	clone, work := filepath.Dir(exe), t.TempDir()
	t.Chdir(work)
	name := filepath.Join("load-tests", "test", "script.js")
	require.NoError(t, os.MkdirAll(filepath.Join(clone, filepath.Dir(name)), 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(filepath.Join(clone, "load-tests"))) })
	require.NoError(t, os.WriteFile(filepath.Join(clone, name), nil, 0o600))
	path, err := Script("load-tests", "test", "script.js")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(clone, name), path)

	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	path, err = Script("load-tests", "test", "script.js")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(work, name), path)
}
