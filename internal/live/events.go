package live

import (
	"fmt"
	"strconv"
	"strings"
)

// What is kept for viewers who come back. One who was away for longer gets a snapshot.
const (
	mostEvents = 300
	mostBytes  = 4 << 20
)

// An event is one of the stream.
type event struct {
	number int
	id     string
	name   string
	data   []byte
}

// An eventLog is the last events. Its ids are those of this server only, so that a page that looked at another one that had
// its address begins anew.
type eventLog struct {
	epoch  string
	number int // of the last event
	events []event
	bytes  int
}

func newEventLog() eventLog { return eventLog{epoch: random(4)} }

func (l *eventLog) add(name string, data []byte) event {
	l.number++
	e := event{l.number, l.id(l.number), name, data}
	l.events, l.bytes = append(l.events, e), l.bytes+len(data)
	for len(l.events) > 1 && (len(l.events) > mostEvents || l.bytes > mostBytes) {
		l.bytes -= len(l.events[0].data)
		l.events = append([]event(nil), l.events[1:]...)
	}
	return e
}

func (l *eventLog) id(number int) string { return fmt.Sprintf("%s-%d", l.epoch, number) }

// last is the id of the last event.
func (l *eventLog) last() string { return l.id(l.number) }

func (l *eventLog) empty() bool { return len(l.events) == 0 }

func (l *eventLog) clear() { l.events, l.bytes = nil, 0 }

// since are the events after the one of an id; not ok where they are not all there.
func (l *eventLog) since(id string) (events []event, ok bool) {
	epoch, text, _ := strings.Cut(id, "-")
	number, err := strconv.Atoi(text)
	if err != nil || epoch != l.epoch || l.empty() || number < l.events[0].number-1 || number > l.number {
		return nil, false
	}
	return l.events[number+1-l.events[0].number:], true
}
