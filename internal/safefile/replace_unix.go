//go:build unix

package safefile

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"
)

func replace(path string, fill func(io.Writer) error) error {
	// In the same folder: a rename cannot leave a file system. Readable: another user may merge.
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return err
	}
	err = fill(file)
	if err == nil {
		err = file.CloseAtomicallyReplace()
	}
	return errors.Join(err, file.Cleanup()) // no error after a replacement
}
