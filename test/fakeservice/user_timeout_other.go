//go:build !linux

package fakeservice

import "time"

// setUserTimeout does nothing, because tests with vanished clients run only on Linux.
func setUserTimeout(uintptr, time.Duration) {}
