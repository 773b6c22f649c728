package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionIsUnknownWithoutACommitAndAModuleVersion(t *testing.T) {
	t.Parallel()
	require.Empty(t, commit(), "a test binary must have no commit")
	require.Equal(t, "unknown", versionOf(debug.Module{}))
	require.Equal(t, "v1.2.3", versionOf(debug.Module{Version: "v1.2.3"}))
}
