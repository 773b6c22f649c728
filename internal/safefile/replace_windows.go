package safefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// replace replaces the file at path by a new one with the output of fill. It uses os.Rename, because renameio does not
// support Windows: a rename there may not be atomic if the power fails. If only the process is killed, it is atomic.
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
