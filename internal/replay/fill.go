package replay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sse-soak/sse-soak/internal/history"
)

// Fill gives a Prometheus that Prometheus started all bodies of remote write that match, in the order of their names.
func (s *Service) Fill(ctx context.Context, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	slices.Sort(files)
	to, err := history.At(s.URL)
	if err != nil {
		return err
	}
	for _, file := range files {
		body, err := os.ReadFile(file) //nolint:gosec // G304: in the folder of an opened archive
		if err == nil {
			err = to.Give(ctx, body)
		}
		if err != nil {
			return fmt.Errorf("load %s: %w", filepath.Base(file), err)
		}
	}
	return nil
}
