package feed

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// lookback is the maximum number of places by which a message may be out of order.
const lookback = 4

// repairRecord returns a record with the simplest explanation of its deviations. During the run, the runner did not yet
// know later messages of other streams. It may have mistaken a message for another one with the same content.
func repairRecord(l *Log, r *ledger.Record, atLeastOnce bool) *ledger.Record {
	if len(r.Holes) == 0 {
		return r
	}
	r = trimStarts(l, r)
	if r.Deviations == nil {
		return r
	}
	out := *r
	d := *r.Deviations
	out.Deviations, out.Holes = &d, slices.Clone(r.Holes)
	d.Overtakes, d.Repeats, out.Cuts = nil, nil, r.Cuts.Clone()
	for _, o := range r.Deviations.Overtakes {
		other := missingCopy(l, &out, l.Entries[o.Number-1].Print, o.By, lookback)
		if other == 0 || o.Number <= out.First {
			d.Overtakes = append(d.Overtakes, o)
			continue
		}
		out.Holes = removeNumber(out.Holes, other)
		out.Holes = append(out.Holes, ledger.Range{o.Number, o.Number})
	}
	received := map[uint64]bool{} // numbers of Repeats
	for _, a := range r.Deviations.Repeats {
		x := l.Extras[a.Extra]
		other := missingCopy(l, &out, x.Print, x.After, searchRange)
		if other == 0 {
			d.Repeats = append(d.Repeats, a)
			continue
		}
		for n := x.After + 1; n < other && other <= x.After+lookback; n++ {
			if out.HasReceived(n) && !received[n] && !slices.ContainsFunc(d.Overtakes, func(o ledger.Overtake) bool { return o.Number == n }) {
				d.Overtakes = append(d.Overtakes, ledger.Overtake{Number: n, By: other, At: a.At})
			}
		}
		received[other] = true
		out.Holes = removeNumber(out.Holes, other)
		countAsReceived(&out, a, atLeastOnce)
	}
	return &out
}

// trimStarts returns the record, with a correction for each stream that received, at its start, only some of several
// consecutive messages with the same content. Such a stream received the last ones, because the others were sent before
// it started.
func trimStarts(l *Log, r *ledger.Record) *ledger.Record {
	out, changed := *r, false
	for i := range r.Spans {
		first := r.Spans[i].First
		last := first
		for last > 0 && last < r.Last && l.follows(first, last+1) && !out.HasReceived(last+1) {
			last++
		}
		if last == first {
			continue
		}
		if !changed {
			changed, out.Holes, out.Spans = true, slices.Clone(r.Holes), slices.Clone(r.Spans)
		}
		out.Spans[i].First, out.Spans[i].Last = last, max(last, out.Spans[i].Last)
		out.Holes = removeNumber(out.Holes, last)
		if first == out.First {
			out.First = last
			for n := first + 1; n < last; n++ {
				out.Holes = removeNumber(out.Holes, n)
			}
			continue
		}
		out.Holes = append(out.Holes, ledger.Range{first, first})
	}
	if !changed {
		return r
	}
	return &out
}

// follows reports whether message next has the content of message first and is not a copy that few streams received.
func (l *Log) follows(first, next uint64) bool {
	a, b := &l.Entries[first-1], &l.Entries[next-1]
	return a.Print == b.Print && 2*b.Count > a.Count
}

// missingCopy returns the number of the first message with this print that the client lacks, among the next count
// messages after number after. It returns 0 if no message matches.
func missingCopy(l *Log, r *ledger.Record, print, after, count uint64) uint64 {
	for n := after + 1; n <= min(after+count, r.Last); n++ {
		if l.Entries[n-1].Print == print && !r.HasReceived(n) {
			return n
		}
	}
	return 0
}

// countAsReceived counts a repeat as received instead of as a copy.
func countAsReceived(r *ledger.Record, a ledger.Repeat, atLeastOnce bool) {
	r.Received++
	if atLeastOnce {
		r.Repeated--
		return
	}
	r.Duplicated--
	r.Cuts.CountCopies(a.At, -1)
	at := slices.IndexFunc(r.Findings, func(f ledger.Finding) bool {
		return f.Kind == ledger.KindDuplicated && f.From == a.Number && f.At == a.At
	})
	if at >= 0 {
		r.Findings = slices.Delete(slices.Clone(r.Findings), at, at+1)
	}
}

func removeNumber(ranges []ledger.Range, n uint64) []ledger.Range {
	return subtract(ranges, []ledger.Range{{n, n}})
}

func repairAll(logs []*Log, atLeastOnce bool, records Records) Records {
	return func(yield func(int, *ledger.Record) bool) {
		for log, r := range records {
			if !yield(log, repairRecord(logs[log], r, atLeastOnce)) {
				return
			}
		}
	}
}
