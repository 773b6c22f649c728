//go:build unix

package preflight

import "golang.org/x/sys/unix"

// openFiles returns the hard limit on open files per process, or 0 if it is unknown.
func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Max
}
