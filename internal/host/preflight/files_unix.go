//go:build unix

package preflight

import "golang.org/x/sys/unix"

// openFiles is how many files a process may have open at most.
func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Max
}
