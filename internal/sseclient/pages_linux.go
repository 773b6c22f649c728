package sseclient

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releasePages releases the memory pages of unmodified files, such as the program. The kernel reloads them from the
// page cache or the disk.
func releasePages() {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = maps.Close() }()
	for m := range cleanMappings(maps) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED) // after an error the pages stay
	}
}

type mapping struct{ from, to uintptr }

// cleanMappings parses /proc/PID/smaps and yields the read-only file mappings that were never written. The loader
// writes to some mappings before it makes them read-only.
func cleanMappings(smaps io.Reader) iter.Seq[mapping] {
	return func(yield func(mapping) bool) {
		var m mapping
		isFile := false
		lines := bufio.NewScanner(smaps)
		for lines.Scan() {
			f := strings.Fields(lines.Text())
			switch {
			case len(f) >= 5 && !strings.HasSuffix(f[0], ":"): // addresses, permissions, offset, device, inode, path
				n, _ := fmt.Sscanf(f[0], "%x-%x", &m.from, &m.to)
				isFile = n == 2 && len(f) >= 6 && strings.HasPrefix(f[1], "r-") && strings.HasPrefix(f[5], "/")
			case len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0" && isFile:
				if !yield(m) {
					return
				}
			}
		}
	}
}
