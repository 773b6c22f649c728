package safefile

import (
	"fmt"
	"io"
)

// Write writes the output of fill to a new file, and replaces path with that file. If the process or, on Unix, the
// machine fails meanwhile, path has either the old or the new content. The folder must exist.
func Write(path string, fill func(io.Writer) error) error {
	if err := replace(path, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
