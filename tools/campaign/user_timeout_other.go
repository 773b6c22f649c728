//go:build !linux

package main

import "time"

// setUserTimeout does nothing: clients vanish on Linux only.
func setUserTimeout(uintptr, time.Duration) {}
