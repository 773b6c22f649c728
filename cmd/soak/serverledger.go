package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/target"
)

// saveLedger asks the target for its own account of the ids with that prefix, and stores it under
// that name. Without one the verdict rests on numbers and clock, which is said; our own backend has
// to have one.
func saveLedger(ctx context.Context, d results.Dir, name string, t target.Several, own bool, prefix string, run *results.Run) {
	var kept bool
	var asked error
	err := d.Write(name, func(w io.Writer) error {
		kept, asked = t.Ledger(ctx, prefix, w)
		return nil
	})
	if err == nil && !kept {
		err = os.Remove(d.Path(name))
	}
	switch {
	case err != nil:
		run.Problems = append(run.Problems, err.Error())
	case !kept && own:
		run.Problems = append(run.Problems, fmt.Sprintf("the backend did not tell its ledger, so the last noops cannot be checked (%v)", asked))
	case asked != nil:
		run.Warnings = append(run.Warnings, asked.Error())
	}
}
