package ledger

// maxOthers is how many event names a ledger tells apart; all others count as one.
const maxOthers = 4

// otherNames stands for all names beyond the first.
const otherNames = "…"

// An EventCount is how many events of one name came, which are no noops.
type EventCount struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// Named counts an event that is no noop, by its name. The count decides nothing: where noops are missing,
// it shows what came instead.
func (l *Ledger) Named(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.countNamed(name) {
		return
	}
	if len(l.rec.Others) >= maxOthers {
		name = otherNames
		if l.countNamed(name) {
			return
		}
	}
	l.rec.Others = append(l.rec.Others, EventCount{Name: name, Count: 1})
}

func (l *Ledger) countNamed(name string) bool {
	for i := range l.rec.Others {
		if l.rec.Others[i].Name == name {
			l.rec.Others[i].Count++
			return true
		}
	}
	return false
}
