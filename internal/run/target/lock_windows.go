package target

import (
	"errors"
	"os"
)

// lock returns an error, because soak starts no target on Windows (run.newDriver).
func lock(*os.File) error { return errors.ErrUnsupported }

func tryLock(*os.File) error { return errors.ErrUnsupported }
