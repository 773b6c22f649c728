package safefile

import (
	"fmt"
	"io"
)

// Write writes the output of fill to path. It writes and syncs a new file, which then replaces the old one. If the
// process fails meanwhile, path has either the old or the new content. On Unix, the same is true if the machine fails.
// The folder must exist.
func Write(path string, fill func(io.Writer) error) error {
	if err := replace(path, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
