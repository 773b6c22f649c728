package untested

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListNamesTestsAndReasons(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	t.Setenv(listFile, list)
	t.Setenv("CI", "")
	t.Run("without a tool", func(t *testing.T) { SkipMissing(t, "no tool:\n  install it"); t.Error("the test continued") })
	t.Run("without a part", func(t *testing.T) { Note(t, "one part") })
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, "no tool: install it\tTestListNamesTestsAndReasons/without_a_tool\n"+
		"one part\tTestListNamesTestsAndReasons/without_a_part\n", string(text))
}

// A recorder is a testing.TB that records a failure instead of failing its test.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, _ ...any) {
	r.message = format
	panic(r)
}

func TestMissingProgramsFailInCI(t *testing.T) {
	t.Setenv("CI", "1")
	r := &recorder{TB: t}
	require.Panics(t, func() { SkipMissing(r, "no tool") })
	require.Contains(t, r.message, "CI must not skip this test")
}
