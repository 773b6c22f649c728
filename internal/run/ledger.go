package run

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sse-soak/sse-soak/internal/results"
)

// saveLedger asks the target for its own ledger of this run's streams, and stores it. Without one the verdict rests on
// numbers and clock, and says so. Our own backend always has one, so there a missing ledger makes the run invalid.
func (s *session) saveLedger(ctx context.Context) {
	var kept bool
	var asked error
	name := results.LedgerName(s.part)
	err := s.dir.Write(name, func(w io.Writer) error {
		kept, asked = s.targets.Ledger(ctx, s.Plan.Prefix, w)
		return nil
	})
	if err == nil && !kept {
		err = os.Remove(s.dir.Path(name))
	}
	switch {
	case err != nil:
		s.seen.Problems = append(s.seen.Problems, err.Error())
	case !kept && s.own:
		s.seen.Problems = append(s.seen.Problems, fmt.Sprintf("the backend did not return its ledger, so the last noops cannot be checked (%v)", asked))
	case asked != nil:
		s.seen.Warnings = append(s.seen.Warnings, asked.Error())
	}
}
