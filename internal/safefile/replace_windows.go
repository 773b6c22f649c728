package safefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// replace uses os.Rename. On Windows a rename may not be atomic after a loss of power, so renameio does not support
// Windows. It is atomic if the process is killed.
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
