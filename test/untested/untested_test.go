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
	t.Run("without a tool", func(t *testing.T) { Missing(t, "no tool:\n  install it"); t.Error("it went on") })
	t.Run("without a part", func(t *testing.T) { Note(t, "one part") })
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, "no tool: install it\tTestListNamesTestsAndReasons/without_a_tool\n"+
		"one part\tTestListNamesTestsAndReasons/without_a_part\n", string(text))
}

// A failing test would fail this one: what it is called on records the failure instead.
type failing struct {
	testing.TB
	failed string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, _ ...any) {
	f.failed = format
	panic(f)
}

func TestMissingProgramsFailInCI(t *testing.T) {
	t.Setenv("CI", "1")
	f := &failing{TB: t}
	require.Panics(t, func() { Missing(f, "no tool") })
	require.Contains(t, f.failed, "CI has to provide this")
}
