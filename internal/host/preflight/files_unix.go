//go:build unix

package preflight

import "golang.org/x/sys/unix"

// openFiles returns the maximum number of open files of a process (hard limit), or 0 if it is unknown.
func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Max
}
