package ledger

import "slices"

// maxEventNames is the maximum number of event names that a ledger counts separately.
const maxEventNames = 4

// remainingNames replaces all names beyond maxEventNames.
const remainingNames = "…"

// An EventCount counts the events with one name that are not messages.
type EventCount struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// CountEvent counts an event that is not a message, by its name. The counts show what arrived instead of messages.
func (l *Ledger) CountEvent(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.extras()
	at := func() int { return slices.IndexFunc(x.Others, func(e EventCount) bool { return e.Name == name }) }
	i := at()
	if i < 0 && len(x.Others) >= maxEventNames {
		name = remainingNames
		i = at()
	}
	if i < 0 {
		x.Others = append(x.Others, EventCount{Name: name, Count: 1})
		return
	}
	x.Others[i].Count++
}
