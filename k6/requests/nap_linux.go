package requests

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in the kernel, which wakes a thread within some 50 µs.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // cut short by a signal it is called again
}
