package target

import (
	"errors"
	"os"
)

// No target is started on Windows (run.newDriver).
func lock(*os.File) error    { return errors.ErrUnsupported }
func tryLock(*os.File) error { return errors.ErrUnsupported }
