package main

import "time"

// A clock reads the time of this process. The wall clock is read once, at the start; everything after is monotonic
// time since then. A wall clock that is stepped during a run therefore moves neither the schedule nor a timestamp.
type clock struct {
	start time.Time
	unix  int64 // wall clock at the start, microseconds
}

func newClock() clock {
	now := time.Now()
	return clock{start: now, unix: now.UnixMicro()}
}

// elapsed returns the monotonic time since the start.
func (c clock) elapsed() time.Duration { return time.Since(c.start) }

// unixMicros returns the current time in microseconds since 1970.
func (c clock) unixMicros() int64 { return c.unix + int64(c.elapsed()/time.Microsecond) }
