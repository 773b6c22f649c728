//go:build unix

package safefile

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// replace replaces the file at path with the output of fill. The new file is in the same folder, because a rename
// cannot cross file systems. Every user can read the file, because another user may merge the shards.
func replace(path string, fill func(io.Writer) error) error {
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return err
	}
	err = fill(file)
	if err == nil {
		err = file.CloseAtomicallyReplace()
	}
	return errors.Join(err, file.Cleanup()) // Cleanup returns no error after a replacement
}
