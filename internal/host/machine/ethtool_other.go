//go:build !linux

package machine

import "time"

// devices returns nothing, because only Linux shows network cards and the counters of AWS's driver.
func devices() (map[string]uint64, bool, error) { return nil, false, nil }

// SuspendedFor returns false, because the time is unknown on this system.
func SuspendedFor() (time.Duration, bool) { return 0, false }
