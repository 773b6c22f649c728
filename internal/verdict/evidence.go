package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// The kinds of evidence, from the strongest.
const (
	ByServer  = "server"  // the server's own ledger of what it sent, beside numbers or clock
	ByNumbers = "numbers" // every stream numbers its noops per device; the server keeps no ledger
	ByClock   = "clock"   // on some streams one noop per interval is all that is known
)

// Evidence is what the counts of a run rest on: how many noops may have gone missing unnoticed
// (docs/accounting.md), and why.
type Evidence struct {
	By        string   `json:"by"`
	CouldHide uint64   `json:"could_hide"`
	Why       []string `json:"why"`
}

// Basis says what the counts rest on where the server keeps no ledger.
func (e Evidence) Basis() string {
	if e.By == ByClock {
		return "clock"
	}
	return "numbers and clock"
}

// hidden is how many noops of a connection may be lost without a trace: none, where the server says which
// were sent last; where it says how many, and that many arrived, only those in whose place a copy may have
// come.
func (j *judge) hidden(r *shard.Connection) uint64 {
	e, ok := j.server[r.ID]
	switch {
	case !ok || wasTaken(r):
		return r.Hidden
	case r.Numbered:
		return 0
	case e.First <= 1 && e.Sent <= r.Received+r.Corrupted+r.Missed():
		return r.Filled
	}
	return r.Hidden
}

// evidence says what the counts rest on. One stream that only the clock judges makes it the clock: there
// is no ledger of the server, or none that tells.
func (j *judge) evidence() {
	e := &j.v.Evidence
	e.By, e.Why = ByNumbers, []string{}
	if j.server != nil {
		e.By = ByServer
	}
	var byClock, hiding int
	for i := range j.m.Connections {
		c := &j.m.Connections[i]
		n := j.hidden(c)
		if c.Received > 0 && !c.Numbered && (j.server == nil || n > 0) {
			byClock++
		}
		if n > 0 {
			e.CouldHide += n
			hiding++
		}
	}
	if byClock > 0 {
		e.By = ByClock
	}
	if hiding == 0 {
		return
	}
	if byClock > 0 {
		e.Why = append(e.Why, fmt.Sprintf("on %s the noops carry no ids that count 1, 2, 3 …: a lost first noop looks like a service that began an interval later, and a noop that was due right before the end may have been on its way, and one that came together with a late one may be its copy",
			counted(byClock, "stream", "streams")))
	}
	if byClock < hiding {
		e.Why = append(e.Why, fmt.Sprintf("on %s a noop was due right before the end, and may have been on its way", counted(hiding-byClock, "numbered stream", "numbered streams")))
	}
}

// hiddenCriterion limits how many noops may have gone missing unnoticed: by default to none, or to any
// number where there is only the clock.
func (j *judge) hiddenCriterion() {
	e, most := j.v.Evidence, j.m.Plan.MaxHidden
	limit := fmt.Sprint(most)
	switch {
	case most < 0 && e.By == ByClock:
		limit = "any"
	case most < 0:
		most, limit = 0, "0"
	}
	j.add(Criterion{
		Name: "noops that could have gone missing unnoticed", Limit: limit, Actual: fmt.Sprintf("%d, by the %s", e.CouldHide, e.By),
		Pass: most < 0 || e.CouldHide <= uint64(most), Invalid: true, weight: doubt, Why: "a pass has to rest on what was seen",
	}, fmt.Sprintf("%d of %d noops could have gone missing unnoticed, the limit is %s (MAX_HIDDEN): %s", e.CouldHide, j.v.Noops.Expected, limit, first(e.Why, "")))
}

// Interval is the time between two noops of a stream, in seconds.
type Interval struct {
	Planned float64 `json:"planned"`
	Kept    float64 `json:"kept"` // the median of the streams on which it could be measured; 0: on none
	Off     int     `json:"off"`  // streams that are over 1 % off the plan
}

// mostOff is how far the interval of a stream may be off the plan, as a share of it.
const mostOff = .01

// interval adds up the intervals that the ledgers measured.
func (j *judge) interval() {
	planned := j.m.Plan.Interval()
	j.v.Interval = Interval{Planned: planned.Seconds()}
	var kept []time.Duration
	for i := range j.m.Connections {
		c := &j.m.Connections[i]
		if c.Interval <= 0 {
			continue
		}
		kept = append(kept, c.Interval)
		if off(planned, c) {
			j.v.Interval.Off++
		}
	}
	if len(kept) == 0 {
		return
	}
	slices.Sort(kept)
	j.v.Interval.Kept = kept[len(kept)/2].Seconds()
	j.told = len(kept)
}

// off says that a stream kept another interval than planned, beyond what jitter and lateness explain.
func off(planned time.Duration, c *shard.Connection) bool {
	return (c.Interval-planned).Abs()-c.IntervalError > time.Duration(mostOff*float64(planned))
}

// intervalCriterion refuses to judge a service by an interval that it does not keep; faults that do not
// rest on it fail the run all the same. Where only some streams are off, the service fails them.
func (j *judge) intervalCriterion() Judged {
	i := j.v.Interval
	c := Criterion{
		Name: "interval between two noops", Limit: fmt.Sprintf("%g s, within %g %%", i.Planned, 100*mostOff), Actual: "too few noops to tell", Pass: i.Off == 0,
		Why: "every count rests on the planned interval",
	}
	if j.told > 0 {
		c.Actual = fmt.Sprintf("%.4g s", i.Kept)
	}
	if i.Off == 0 {
		return Judged{Criterion: c}
	}
	c.Actual += fmt.Sprintf(", %s off", counted(i.Off, "stream", "streams"))
	if 2*i.Off > j.told {
		c.Invalid, c.weight = true, noInterval
		return Judged{c, []string{fmt.Sprintf("the service sends a noop every %.3g s, the plan says every %g s: set NOOP_INTERVAL=%.3g", i.Kept, i.Planned, i.Kept)}}
	}
	var reasons []string
	for n := range j.m.Connections {
		if r := &j.m.Connections[n]; r.Interval > 0 && off(j.m.Plan.Interval(), r) {
			reasons = append(reasons, fmt.Sprintf("%s was sent a noop every %.3g s, not every %g s", r.ID, r.Interval.Seconds(), i.Planned))
		}
	}
	return Judged{c, reasons}
}
