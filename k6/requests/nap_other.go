//go:build !linux

package requests

import "time"

// nap sleeps with a Go timer.
func nap(d time.Duration) { time.Sleep(d) }
