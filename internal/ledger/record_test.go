package ledger

import "testing"

// A part of a run does not know which messages the service confirmed. It reports the gaps of its streams.
func TestGapsOfPublishedMessages(t *testing.T) {
	for name, c := range map[string]struct {
		resumed bool
		want    uint64
	}{"resumed": {true, 3}, "not resumed": {false, 2}} {
		l := openLedger(&Config{Counting: Numbered, Published: true})
		deliverAll(l, 10, 2, 3, 6)
		if c.resumed {
			l.IDReceived()
		}
		reconnect(l, 20, 30, 40)
		deliverAll(l, 50, 8)
		if r := l.Record(); r.Lost != 0 || r.Gaps() != c.want {
			t.Errorf("%s: %d lost and %d in gaps, want 0 and %d: %+v", name, r.Lost, r.Gaps(), c.want, r)
		}
	}
}
