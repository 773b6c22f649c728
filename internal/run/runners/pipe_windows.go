package runners

import (
	"errors"
	"os"
)

// makePipe returns an error, because soak starts no runner on Windows (run.newDriver).
func makePipe(string) (reader, writer *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}

func openPipe(string) (reader *os.File, err error) { return nil, os.ErrNotExist }
