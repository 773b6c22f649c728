//go:build !linux

package machine

import "time"

// devices are the network cards and the counters of AWS's driver, which only Linux shows.
func devices() (map[string]uint64, bool, error) { return nil, false, nil }

// SuspendedFor is not known.
func SuspendedFor() (time.Duration, bool) { return 0, false }
