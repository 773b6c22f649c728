package sseclient

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// leavePages takes the pages of this program's own file out of its memory, where they are as in that file: those that are used
// again come from the page cache.
func leavePages() {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = maps.Close() }()
	for m := range unchanged(maps) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED) // where the kernel refuses nothing is lost
	}
}

// A mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unchanged yields the mappings of files, as in /proc/PID/smaps, that are read-only and were never written: the
// loader relocates some before it makes them read-only, and its changes are not in the file.
func unchanged(smaps io.Reader) func(yield func(mapping) bool) {
	return func(yield func(mapping) bool) {
		var m mapping
		ofFile := false
		lines := bufio.NewScanner(smaps)
		for lines.Scan() {
			f := strings.Fields(lines.Text())
			switch {
			case len(f) >= 5 && !strings.HasSuffix(f[0], ":"): // addresses, permissions, offset, device, inode, path
				n, _ := fmt.Sscanf(f[0], "%x-%x", &m.from, &m.to)
				ofFile = n == 2 && len(f) >= 6 && strings.HasPrefix(f[1], "r-") && strings.HasPrefix(f[5], "/")
			case len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0" && ofFile:
				if !yield(m) {
					return
				}
			}
		}
	}
}
