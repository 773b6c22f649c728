package probe

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
)

// findCounter finds the data, number, time and interval of messages that the probe did not publish, and adds them to m.
func (f *findings) findCounter(m *message, all []series, arrivals []*unit) {
	if len(arrivals) > 2 && !bytes.Contains(arrivals[0].Data, []byte("{token}")) && !slices.ContainsFunc(arrivals, func(u *unit) bool { return string(u.Data) != string(arrivals[0].Data) }) {
		if same := arrivals[0].Data; len(same) <= maxQuoted {
			m.match.add("data", string(same), "All messages had this data.")
		} else {
			m.notes = append(m.notes, fmt.Sprintf("All messages had the same data of %d bytes, which is too long to quote.", len(same)))
		}
	}
	source, note := f.findSequence(all)
	if m.seq = source; source != "" {
		m.match.add("seq", source, note)
		f.findScope(m, all)
	} else {
		f.missing = append(f.missing, "message.seq: "+note)
	}
	f.findTime(m, arrivals, nil)
	f.findInterval(m, all)
}

// findSequence finds a place whose values grow by one on each stream. note has the evidence, or the reason why no place
// was found.
func (f *findings) findSequence(all []series) (source, note string) {
	longest := slices.MaxFunc(all, func(a, b series) int { return len(a.units) - len(b.units) })
	if len(longest.units) < 3 {
		return "", fmt.Sprintf("No stream received more than %s, too few to find a sequence; use a longer probe (--seconds).", format.Count(len(longest.units), "message"))
	}
	growing := ""
	options := sources(longest.units[0].Block)
	if at := slices.Index(options, "id"); at > 0 {
		options = slices.Insert(slices.Delete(options, at, at+1), 0, "id")
	}
	for _, option := range options {
		read := seqReader(option)
		if read == nil {
			continue
		}
		var example, jump []int64
		consecutive, grows, steps, repeats := true, true, 0, 0
		for _, messages := range all {
			last := int64(math.MinInt64)
			for _, u := range messages.units {
				v, ok := read(&u.Block)
				if !ok || last != math.MinInt64 && v < last {
					consecutive, grows = false, false
					break
				}
				if last != math.MinInt64 {
					steps++
				}
				if v == last {
					repeats++
				}
				if consecutive && last != math.MinInt64 && v != last+1 {
					consecutive, jump = false, []int64{last, v}
				}
				last = v
				if messages.track == longest.track && len(example) < 4 {
					example = append(example, v)
				}
			}
			if !grows {
				break
			}
		}
		switch {
		case consecutive && !f.isClock(option, longest):
			return option, fmt.Sprintf("It grew by one with each message of every stream: %s …", joinNumbers(example))
		case grows && repeats <= steps/4 && growing == "" && !f.isTime(option, longest):
			growing = fmt.Sprintf("the value at %s grows, but not always by one (%s …); it may be a counter of the whole service, or count messages for other clients, or messages were lost or sent twice. ", quoteJS(option), joinNumbers(jump))
		}
	}
	return "", growing + "No value in the messages grew by one with each message."
}

// isTime reports whether the number of the first message is a time within a day of its arrival.
func (f *findings) isTime(source string, messages series) bool {
	read := timeReader(source)
	v, ok := read(&messages.units[0].Block)
	return ok && messages.units[0].at.Sub(time.UnixMicro(v)).Abs() < 24*time.Hour
}

// isClock reports whether the number is a time that advances by between half and twice the time between the first and
// the last message. Such a number skips a second when a message is late.
func (f *findings) isClock(source string, messages series) bool {
	first, last := messages.units[0], messages.units[len(messages.units)-1]
	read := timeReader(source)
	from, _ := read(&first.Block)
	to, _ := read(&last.Block)
	clock, elapsed := time.Duration(to-from)*time.Microsecond, last.at.Sub(first.at)
	return f.isTime(source, messages) && clock >= elapsed/2 && clock <= 2*elapsed
}

func joinNumbers[N int | int64](numbers []N) string {
	var out []string
	for _, n := range numbers {
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, ", ")
}

// findScope determines whether numbers are per stream or per topic, from a stream that was opened later.
func (f *findings) findScope(m *message, all []series) {
	read := seqReader(m.seq)
	var later *unit
	for _, messages := range all {
		if messages.track.role == fresh && len(messages.units) > 0 {
			later = messages.units[0]
		}
	}
	if later == nil {
		f.missing = append(f.missing, "message.per: no message arrived on a stream that was opened later, so it is unknown whether numbers are per stream ('stream') or per topic ('topic').")
		return
	}
	v, _ := read(&later.Block)
	for _, messages := range all {
		if messages.track.role != plain {
			continue
		}
		for _, u := range messages.units {
			if o, ok := read(&u.Block); ok && o == v && u.at.Sub(later.at).Abs() < min(time.Second, 2*f.session.Pace) {
				m.match.add("per", "topic", fmt.Sprintf("A stream that was opened later began with %d, which another stream received at the same time.", v))
				return
			}
		}
	}
	m.match.add("per", "stream", fmt.Sprintf("A stream that was opened later began with %d, which no other stream received at that time.", v))
}

const shortestInterval = 50 * time.Millisecond

func (f *findings) findInterval(m *message, all []series) {
	if slices.ContainsFunc(m.match, func(member field) bool { return member.name == "per" && member.value == "topic" }) {
		return // message.every cannot be combined with numbers per topic
	}
	const minIntervals = 3
	var intervals []time.Duration
	var most series // the streams of one broadcast have the same intervals, so only one stream determines the mean
	for _, messages := range all {
		if messages.track.role != plain {
			continue
		}
		if len(messages.units) > len(most.units) {
			most = messages
		}
		for i := 1; i < len(messages.units); i++ {
			intervals = append(intervals, messages.units[i].at.Sub(messages.units[i-1].at))
		}
	}
	n := len(most.units) - 1
	if n < minIntervals {
		return
	}
	slices.Sort(intervals)
	shortest, median, longest := intervals[0], intervals[len(intervals)/2], intervals[len(intervals)-1]
	if median < shortestInterval {
		return
	}
	slack := max(median/5, shortestInterval)
	if shortest > median-slack && longest < median+slack {
		mean, maxError := most.units[n].at.Sub(most.units[0].at)/time.Duration(n), (longest-shortest)/time.Duration(n)
		m.match.add("every", roundMean(mean, maxError), "The messages arrived "+formatRange(shortest, longest)+" apart.")
	}
}

// roundMean rounds the mean interval of messages to as few decimal places as possible. It changes the mean by at most
// maxError, the maximum error of the mean, or by half a percent if that is more. A run accepts a deviation of 1 %.
func roundMean(mean, maxError time.Duration) float64 {
	s := mean.Seconds()
	limit := max(s/200, maxError.Seconds())
	unit := 1.0
	for math.Abs(math.Round(s/unit)*unit-s) > limit {
		unit /= 10
	}
	return trimFloat(math.Round(s/unit) * unit)
}

func (f *findings) findOrder(m *message, all []series) {
	if m.seq == "" {
		return
	}
	read := seqReader(m.seq)
	duplicates, reordered := 0, 0
	for _, messages := range all {
		numbers, last := map[int64]bool{}, int64(math.MinInt64)
		for _, u := range messages.units {
			v, ok := read(&u.Block)
			if !ok {
				continue
			}
			switch {
			case numbers[v]:
				duplicates++
			case v < last:
				reordered++
			}
			numbers[v], last = true, max(last, v)
		}
	}
	if duplicates > 0 {
		m.notes = append(m.notes, fmt.Sprintf("%s arrived twice on a stream, which fails a run. If the service allows this, write delivery: 'at-least-once'.", format.Count(duplicates, "message")))
	}
	if reordered > 0 {
		m.notes = append(m.notes, fmt.Sprintf("%s arrived out of order, which fails a run. If the service allows this, write order: 'any'.", format.Count(reordered, "message")))
	}
}
