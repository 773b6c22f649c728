package ledger

import (
	"slices"
	"testing"
)

// If each stream has its own numbers, a stream that does not resume the previous one restarts them.
func TestNumbersOfEachStream(t *testing.T) {
	for _, c := range []struct {
		name      string
		perStream bool
		resumed   bool
		second    []uint64
		want      Counts
		lost      uint64
	}{
		{"a lost first number", true, false, []uint64{2, 3, 4}, Counts{Received: 6}, 2},
		{"a lower first number", true, false, []uint64{0, 1, 2, 3}, Counts{Received: 7}, 1},
		{"numbers that continue", true, false, []uint64{5, 6}, Counts{Received: 5}, 1},
		{"a replay without resume", true, false, []uint64{4, 5}, Counts{Received: 4, Duplicated: 1}, 1},
		{"a stream that resumes", true, true, []uint64{1, 5}, Counts{Received: 4, Duplicated: 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := openLedger(&Config{Counting: Numbered, PerStream: c.perStream})
			deliverAll(l, 10, 1, 2, 4)
			if c.resumed {
				l.IDReceived()
			}
			reconnect(l, 20, 30, 40)
			deliverAll(l, 50, c.second...)
			c.want.Lost = c.lost
			sums, r := l.Sums(), l.Record()
			if sums.Counts != c.want || r.Counts != c.want {
				t.Errorf("%+v in sums, %+v in the record; want %+v", sums.Counts, r.Counts, c.want)
			}
			if found := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == KindLost && f.From == 3 && f.To == 3 }); found < 0 {
				t.Errorf("the loss on the first stream is not among the findings %+v", r.Findings)
			}
		})
	}
}
