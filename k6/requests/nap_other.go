//go:build !linux

package requests

import "time"

func nap(d time.Duration) { time.Sleep(d) }
