// Package atomicfile writes files whole or not at all.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write puts what fill writes at path. It is synced to the disk before it takes the place of what was
// there, so that a killed process, or machine, leaves the one or the other. The folder has to be there.
func Write(path string, fill func(io.Writer) error) error {
	// Beside its place: a rename cannot leave a file system. Readable: who merges need not be who ran.
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o644))
	if err == nil {
		err = fill(file)
		if err == nil {
			err = file.CloseAtomicallyReplace()
		}
		err = errors.Join(err, file.Cleanup()) // nothing where it was replaced
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
