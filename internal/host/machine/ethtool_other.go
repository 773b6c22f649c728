//go:build !linux

package machine

import "time"

// cardCounters returns no counters, because only Linux reports network cards and the counters of AWS's driver.
func cardCounters() (map[string]uint64, bool, error) { return nil, false, nil }

// SuspendedFor returns false, because the time is unknown on this system.
func SuspendedFor() (time.Duration, bool) { return 0, false }
