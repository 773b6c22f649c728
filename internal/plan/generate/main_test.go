package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

func TestGeneratedFilesMatchTheTable(t *testing.T) {
	t.Parallel()
	for file := range endMarkers {
		want, err := generate(root, file)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.Equal(t, want, string(got), "run `go generate ./internal/plan`")
	}
}

// `make` passes these settings, and `make help` shows them.
func TestMakefileHasTheSameDefaults(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	count := 0
	for _, s := range allSettings() {
		line := regexp.MustCompile(`(?m)^` + s.Name + ` \?= ?(.*)$`).FindStringSubmatch(string(makefile))
		if line != nil {
			require.Equal(t, s.String(), line[1], s.Name)
			count++
		}
	}
	require.GreaterOrEqual(t, count, 7, "the Makefile must have the seven settings of a soak")
}
