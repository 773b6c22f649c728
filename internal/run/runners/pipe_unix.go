//go:build unix

package runners

import (
	"errors"
	"os"
	"syscall"
)

func makePipe(path string) (reader, writer *os.File, err error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, nil, err //nolint:wrapcheck // the caller uses another pipe
	}
	if reader, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // #nosec G304 -- in the folder of the run
		writer, err = os.OpenFile(path, os.O_WRONLY, 0) // #nosec G304 -- in the folder of the run
	}
	if err != nil {
		return nil, nil, errors.Join(err, reader.Close(), os.Remove(path))
	}
	return reader, writer, nil
}

// openPipe opens the reading end of a named pipe. It returns ErrAttached if the pipe has a reader already.
func openPipe(path string) (reader *os.File, err error) {
	writer, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) // #nosec G304 -- in the folder of the run
	switch {
	case err == nil:
		return nil, errors.Join(ErrAttached, writer.Close())
	case !errors.Is(err, syscall.ENXIO): // ENXIO: the pipe has no reader
		return nil, err //nolint:wrapcheck // names the file
	}
	reader, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // #nosec G304 -- in the folder of the run
	return reader, err                                                 //nolint:wrapcheck // names the file
}
