package requests

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in the kernel, which delays the wake-up by up to 50 µs (the default timer slack).
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal ends the sleep early; pace then sleeps again
}
