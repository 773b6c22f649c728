package target

import (
	"errors"
	"os"
)

// No target is started on Windows (run.newDriver).
func lock(*os.File) error { return errors.ErrUnsupported }

// tryLock fails if another process has the lock.
func tryLock(*os.File) error { return errors.ErrUnsupported }
