package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

func TestTheFilesAreWhatTheTableMakes(t *testing.T) {
	t.Parallel()
	want, err := files(root)
	require.NoError(t, err)
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, text, string(got), "%s: run `go generate ./internal/plan`", name)
	}
}

// make hands these on, so that `make help` can show them.
func TestTheMakefileHasTheSameDefaults(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	found := 0
	for _, s := range all() {
		line := regexp.MustCompile(`(?m)^` + s.Name + ` \?= ?(.*)$`).FindStringSubmatch(string(makefile))
		if line != nil {
			require.Equal(t, s.String(), line[1], s.Name)
			found++
		}
	}
	require.GreaterOrEqual(t, found, 7)
}
