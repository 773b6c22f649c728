package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFullDiskIsReported(t *testing.T) {
	out := t.TempDir()
	writeJudgedRun(t, out, "r", 1_700_000_000_000_000)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = full
	t.Cleanup(func() { os.Stdout = stdout; _ = full.Close() })
	for _, args := range [][]string{{"report", filepath.Join(out, "r")}, {"report", "--help"}, {"history", "--out", out}} {
		require.Equal(t, 2, execute(args), args)
	}
}
