package safefile

import (
	"fmt"
	"io"
)

// Write writes the output of fill to path. It syncs a new file before the file replaces the old one, so that a killed process
// or machine leaves one or the other. The folder must exist.
func Write(path string, fill func(io.Writer) error) error {
	if err := replace(path, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
