package feed

import "time"

// A log is monotonous if it has 2 to fewContents contents, and the mean interval is below shortInterval. Several
// streams must have received a message whose content repeats. Several messages with the same content may then be in
// transit at the same time, so it is unknown which of them a stream lacks.
const (
	fewContents   = 5
	shortInterval = 60 * time.Millisecond
)

// Monotonous returns the number of different contents and the mean interval of the messages of the first monotonous
// log, whose streams cannot be compared. It returns 0 if no log is monotonous.
func (f *Feed) Monotonous() (contents int, interval time.Duration) {
	for _, l := range f.logs {
		if contents, interval = l.monotonous(); contents > 0 {
			return contents, interval
		}
	}
	return 0, 0
}

// monotonous is Monotonous for one log. If all messages have the same content, it does not matter which are missing.
func (l *Log) monotonous() (contents int, interval time.Duration) {
	shared := false
	for i := range l.Entries {
		if e := &l.Entries[i]; e.Repeat {
			shared = shared || e.Count > 1
		} else {
			contents++
		}
	}
	if !shared || contents == 1 || contents > fewContents {
		return 0, 0
	}
	last := len(l.Entries) - 1
	if interval = (l.Entries[last].At - l.Entries[0].At) / time.Duration(last); interval >= shortInterval {
		return 0, 0
	}
	return contents, interval
}
