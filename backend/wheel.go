package main

import "time"

// Limits of the staggered schedule: the number of buckets, and the time between two ticks.
const (
	maxBuckets  = 1024
	minTickTime = 5 * time.Millisecond
)

// A wheel schedules the noops of the devices in its buckets. Tick 0 is at the start of the hub's clock, and the other
// ticks follow at a constant rate. Tick t serves bucket t mod len(buckets), so each bucket is served once per interval.
// The broadcast schedule is a wheel with one bucket.
type wheel struct {
	interval time.Duration
	buckets  [][]*device
	next     int // first bucket in the search for the emptiest bucket
}

// newWheel returns an empty wheel. A staggered wheel has one bucket per minTickTime of the interval, up to maxBuckets.
func newWheel(interval time.Duration, schedule string) *wheel {
	n := 1
	if schedule == scheduleStaggered {
		n = max(1, min(maxBuckets, int(interval/minTickTime)))
	}
	return &wheel{interval: interval, buckets: make([][]*device, n)}
}

// tickAt returns the last tick that is due at an elapsed time.
func (w *wheel) tickAt(elapsed time.Duration) int64 {
	n := int64(len(w.buckets))
	rounds, remainder := int64(elapsed/w.interval), int64(elapsed%w.interval)
	return rounds*n + remainder*n/int64(w.interval)
}

// dueAt returns the elapsed time at which a tick is due. It counts from the start, so rounding errors do not
// accumulate.
func (w *wheel) dueAt(tick int64) time.Duration {
	n := int64(len(w.buckets))
	rounds, slot := tick/n, tick%n
	return time.Duration(rounds)*w.interval + time.Duration((slot*int64(w.interval)+n-1)/n)
}

func (w *wheel) bucketOf(tick int64) int { return int(tick % int64(len(w.buckets))) }

// add puts a device into the emptiest bucket. Among equally empty buckets it prefers one that is far from the last
// choice, so that even a few devices are spread evenly.
func (w *wheel) add(d *device) {
	n := len(w.buckets)
	best := w.next % n
	for i := range n {
		if b := (w.next + i) % n; len(w.buckets[b]) < len(w.buckets[best]) {
			best = b
		}
	}
	w.next = (best + n*618/1000 + 1) % n
	d.bucket, d.index = int32(best), int32(len(w.buckets[best])) // #nosec G115 -- buckets and devices of one backend
	w.buckets[best] = append(w.buckets[best], d)
}

// remove removes a device, if it is in a bucket. The last device of the bucket moves to the free place.
func (w *wheel) remove(d *device) {
	if d.bucket < 0 {
		return
	}
	b := w.buckets[d.bucket]
	end := len(b) - 1
	b[d.index] = b[end]
	b[d.index].index = d.index
	b[end] = nil
	w.buckets[d.bucket] = b[:end]
	d.bucket = -1
}
