//go:build unix

package runners

import (
	"errors"
	"os"
	"syscall"
)

// makePipe makes a named pipe and opens both ends.
func makePipe(path string) (listen, speak *os.File, err error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, nil, err //nolint:wrapcheck // the caller uses another pipe
	}
	if listen, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		speak, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, listen.Close(), os.Remove(path))
	}
	return listen, speak, nil
}

// openPipe opens the end of a named pipe that nobody listens to.
func openPipe(path string) (listen *os.File, err error) {
	speak, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	switch {
	case err == nil:
		return nil, errors.Join(ErrAttached, speak.Close())
	case !errors.Is(err, syscall.ENXIO): // which is for a pipe without a reader
		return nil, err //nolint:wrapcheck // names the file
	}
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:wrapcheck // names the file
}
