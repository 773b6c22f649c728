package results

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A suite of responses counts chunks, although the service description may call its events messages.
func TestFiguresOfResponsesCountChunks(t *testing.T) {
	t.Parallel()
	r := new(Entry)
	r.Verdict = &verdict.Verdict{Responses: new(verdict.Responses)}
	r.Verdict.Messages.Expected, r.Verdict.Messages.Received = 80, 79
	require.Equal(t, "79 of 80 chunks received", r.figures()[0])
}

func TestUnreadableIndexNamesItsCause(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 1, nil)
	require.NoError(t, os.Mkdir(filepath.Join(out, HistoryFile), 0o700))
	err := WriteHistory(out)
	require.ErrorContains(t, err, "not a regular file; remove it")
	require.NotContains(t, err.Error(), "was not written by")
}
