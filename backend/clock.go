package main

import "time"

// A clock reads the wall clock once, at the start, and adds the monotonic time since then. A later step of the wall
// clock therefore changes neither the schedule nor the timestamps.
type clock struct {
	start time.Time
	unix  int64 // wall clock at the start, in microseconds since 1970
}

func newClock() clock {
	now := time.Now()
	return clock{start: now, unix: now.UnixMicro()}
}

func (c clock) elapsed() time.Duration { return time.Since(c.start) }

// unixMicros returns the current time in microseconds since 1970.
func (c clock) unixMicros() int64 { return c.unix + int64(c.elapsed()/time.Microsecond) }
