package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// replace does by MoveFileEx, which os.Rename calls, what renameio does elsewhere: that refuses Windows, whose rename is
// not promised to be atomic after a loss of power. After a killed process it is.
func replace(path string, fill func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"*")
	if err != nil {
		return err
	}
	err = fill(file)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}
