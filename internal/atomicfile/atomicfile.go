// Package atomicfile writes files whole or not at all.
package atomicfile

import (
	"fmt"
	"io"
)

// Write puts what fill writes at path. It is synced to the disk before it takes the place of what was
// there, so that a killed process, or machine, leaves the one or the other. The folder has to be there.
func Write(path string, fill func(io.Writer) error) error {
	if err := replace(path, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
