//go:build !linux

package requests

import "time"

// nap sleeps by a timer of Go.
func nap(d time.Duration) { time.Sleep(d) }
