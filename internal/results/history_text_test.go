package results

import (
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
