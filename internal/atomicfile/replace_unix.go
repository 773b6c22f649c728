//go:build unix

package atomicfile

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"
)

func replace(path string, fill func(io.Writer) error) error {
	// Beside its place: a rename cannot leave a file system. Readable: who merges need not be who ran.
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return err
	}
	err = fill(file)
	if err == nil {
		err = file.CloseAtomicallyReplace()
	}
	return errors.Join(err, file.Cleanup()) // nothing where it was replaced
}
