package target

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/safefile"
)

// A folder holds the files of a running local target: sockets, nginx's configuration and pid file. The kernel releases
// the lock when this process ends, even if a signal kills it.
type folder struct {
	path string
	lock *os.File
}

const (
	folderPattern = "soak-*" // short: the path of a unix socket is limited to 107 bytes on Linux, and to 103 on macOS
	lockName      = "soak.lock"
)

// newFolder creates a folder, and removes the folders of processes that were killed.
func newFolder() (*folder, error) {
	removeOrphans(os.TempDir())
	path, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return nil, fmt.Errorf("make a folder for sockets: %w", err)
	}
	f := &folder{path: path}
	if err := f.claim(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a folder for sockets: %w", err), os.RemoveAll(path))
	}
	return f, nil
}

// claim locks the lock file before the file gets its name, so that no other process can lock it first.
func (f *folder) claim() (err error) {
	temporary := filepath.Join(f.path, "."+lockName)
	if f.lock, err = os.OpenFile(temporary, os.O_CREATE|os.O_RDWR, 0o600); err != nil { // #nosec G304 -- in our new folder
		return err
	}
	if err := lock(f.lock); err != nil {
		return errors.Join(err, f.lock.Close())
	}
	return os.Rename(temporary, filepath.Join(f.path, lockName))
}

func (f *folder) remove() {
	_ = os.RemoveAll(f.path)
	_ = f.lock.Close()
}

// removeOrphans removes each of our folders in parent if its lock is free. A folder without a lock file stays: another
// process may be creating the folder, or the folder belongs to another program.
func removeOrphans(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, folderPattern, lockName)) // the pattern is valid
	for _, path := range locks {
		orphan, err := os.OpenFile(path, os.O_RDWR|safefile.NoFollow, 0) // #nosec G304 -- in the system's temporary folder, no link
		if err != nil {
			continue // the folder of another user
		}
		if tryLock(orphan) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = orphan.Close()
	}
}
