//go:build !linux

package fakeservice

import "time"

// setUserTimeout does nothing: clients vanish on Linux only.
func setUserTimeout(uintptr, time.Duration) {}
