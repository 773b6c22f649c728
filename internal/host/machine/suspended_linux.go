package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// SuspendedFor returns how long the machine has been suspended since its start: the difference between a clock
// that includes suspended time and one that does not (clock_gettime(2)). It repeats a slow reading, during which the process may have waited for a CPU,
// so the result is accurate to a quarter of SuspendedResolution. ok is false after ten slow readings or an error.
func SuspendedFor() (d time.Duration, ok bool) {
	for range 10 {
		var before, boot, after unix.Timespec
		for _, read := range []struct {
			clock int32
			to    *unix.Timespec
		}{{unix.CLOCK_MONOTONIC, &before}, {unix.CLOCK_BOOTTIME, &boot}, {unix.CLOCK_MONOTONIC, &after}} {
			if unix.ClockGettime(read.clock, read.to) != nil {
				return 0, false
			}
		}
		if after.Nano()-before.Nano() < int64(SuspendedResolution/2) {
			return time.Duration(max(boot.Nano()-(before.Nano()+after.Nano())/2, 0)), true
		}
	}
	return 0, false
}
