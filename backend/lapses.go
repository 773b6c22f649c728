package main

import "time"

// lapses is a queue of ids that run out in the order they came: held
// numberings, or ended ids in the ledger. An id is in one queue at most.
// Leaving it early costs nothing: the entry goes stale and is swept later.
type lapses struct {
	queue []lapse
	live  int // entries that are not stale
}

type lapse struct {
	d     *device
	entry uint32 // d.lapse when it was queued
	at    time.Duration
}

func (l lapse) stale() bool { return l.d.lapse != l.entry }

// push queues an id that runs out at that elapsed time.
func (l *lapses) push(d *device, at time.Duration) {
	if len(l.queue) > 2*l.live+1024 {
		l.sweep()
	}
	d.lapse++
	l.queue = append(l.queue, lapse{d, d.lapse, at})
	l.live++
}

// drop takes an id out.
func (l *lapses) drop(d *device) {
	d.lapse++
	l.live--
}

// next is when the first id runs out.
func (l *lapses) next() (time.Duration, bool) {
	for len(l.queue) > 0 && l.queue[0].stale() {
		l.queue[0] = lapse{}
		l.queue = l.queue[1:]
	}
	if len(l.queue) == 0 {
		return 0, false
	}
	return l.queue[0].at, true
}

// front is the first id; there must be one.
func (l *lapses) front() *device {
	l.next()
	return l.queue[0].d
}

func (l *lapses) sweep() {
	kept := make([]lapse, 0, l.live+1024)
	for _, e := range l.queue {
		if !e.stale() {
			kept = append(kept, e)
		}
	}
	l.queue = kept
}
