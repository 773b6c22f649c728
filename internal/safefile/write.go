package safefile

import (
	"fmt"
	"io"
)

// Write writes the output of fill to a new file, which then replaces path. If the process fails meanwhile, path has the
// old or the new content; on Unix, even if the machine fails. The folder must exist.
func Write(path string, fill func(io.Writer) error) error {
	if err := replace(path, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
