package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// SuspendedFor returns for how long the machine has been suspended since its start: the difference of the clocks that continue and stop while the machine is suspended (clock_gettime(2)). A reading
// that took long, because the process had to wait for a CPU in it, is repeated.
func SuspendedFor() (d time.Duration, ok bool) {
	for range 3 {
		var before, boot, after unix.Timespec
		for _, read := range []struct {
			clock int32
			to    *unix.Timespec
		}{{unix.CLOCK_MONOTONIC, &before}, {unix.CLOCK_BOOTTIME, &boot}, {unix.CLOCK_MONOTONIC, &after}} {
			if unix.ClockGettime(read.clock, read.to) != nil {
				return 0, false
			}
		}
		if after.Nano()-before.Nano() < int64(10*time.Millisecond) {
			return time.Duration(boot.Nano() - before.Nano()), true
		}
	}
	return 0, false
}
