package safefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// replace replaces the file at path with a new file that has the output of fill. It uses os.Rename, because renameio
// does not support Windows. A rename on Windows is atomic if the process is killed, but perhaps not if the power fails.
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
