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
	rare := l.rec.rarely()
	if len(rare.Others) >= maxOthers {
		name = otherNames
		if l.countNamed(name) {
			return
		}
	}
	rare.Others = append(rare.Others, EventCount{Name: name, Count: 1})
}

func (l *Ledger) countNamed(name string) bool {
	others := l.rec.rarities().Others
	for i := range others {
		if others[i].Name == name {
			others[i].Count++
			return true
		}
	}
	return false
}
