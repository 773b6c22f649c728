package soak

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// maxFindings limits the findings in a line of progress. A restart of the service drops all streams within one second.
const maxFindings = 20

// A progressNews provides the findings and the parts of the series that are new since the previous line of progress.
type progressNews struct {
	bucketCount       int                   // ended buckets, or points of a short run, that were reported
	faults            map[string]faultState // clients with faults, by id
	expectsReconnects bool                  // streams end on purpose, so a reconnect is not a finding
}

// A faultState holds the faults of a client at its last check.
type faultState struct {
	missed, faults uint64
	outages        int // outages after which the client reconnected
	state          ledger.State
}

func faultStateOf(r *ledger.Record) faultState {
	s := faultState{missed: r.Missed(), faults: r.Faults(), outages: r.Survived}
	if r.State == ledger.Dropped || r.State == ledger.Refused {
		s.state = r.State
	}
	return s
}

// report returns the progress of a recorder, with the news since the last call.
func (n *progressNews) report(r *recorder) shard.Progress {
	now := r.wall(time.Now()).UnixMilli()
	n.expectsReconnects = r.expectsReconnects()
	var found []shard.FoundFault
	unlisted := 0
	var p shard.Progress
	r.sumUp(&p, n.hasFinding, func(c *ledger.Record, excluded bool) {
		if excluded {
			p.CountDisturbed(c)
		} else {
			p.Count(c)
		}
		text := n.describeChange(c, excluded)
		switch {
		case text == "":
		case len(found) < maxFindings:
			found = append(found, shard.FoundFault{AtMS: now, ID: c.ID, Text: text})
		default:
			unlisted++
		}
	})
	p.Found, p.Unlisted = found, unlisted
	n.bucketCount += r.addSeries(&p, n.bucketCount)
	return p
}

// hasFinding reports whether a client had a fault at an earlier call of report.
func (n *progressNews) hasFinding(id string) bool {
	_, known := n.faults[id]
	return known
}

// describeChange describes the faults of a client that are new since the last call, "" for none. excluded reports
// whether the script acts on the client.
func (n *progressNews) describeChange(c *ledger.Record, excluded bool) string {
	current := faultStateOf(c)
	if excluded { // the script drops the stream of the client, which may then miss messages
		current.missed = 0
		if current.state == ledger.Dropped {
			current.state = ""
		}
	}
	previous, known := n.faults[c.ID]
	if current == previous || !known && current == (faultState{}) {
		return ""
	}
	if n.faults == nil {
		n.faults = map[string]faultState{}
	}
	n.faults[c.ID] = current
	var parts []string
	if current.missed > previous.missed {
		parts = append(parts, fmt.Sprintf("%d missed", current.missed-previous.missed))
	}
	if current.faults > previous.faults {
		parts = append(parts, fmt.Sprintf("%d faulty", current.faults-previous.faults))
	}
	switch {
	case current.state != previous.state && current.state != "":
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s: %s", current.state, c.Reason), ": "))
	case current.outages > previous.outages && !n.expectsReconnects:
		parts = append(parts, "reconnected after losing its stream")
	}
	return strings.Join(parts, ", ")
}

// expectsReconnects reports whether streams end without a fault before the run does: the run cuts them, the service
// limits their lifetime, or their tokens expire.
func (r *recorder) expectsReconnects() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Cuts || r.config.Lifetime > 0
}

// addSeries adds the ended buckets from index n and the current bucket to p, or the points of a short run. It also sets
// the lateness of all messages. It returns the number of ended buckets or points that it added.
func (r *recorder) addSeries(p *shard.Progress, n int) int {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	p.Lateness = r.lateness.Pack()
	dest, series, current, recent := &p.Buckets, r.series, r.bucket, r.recent
	if r.pointLateness != nil {
		dest, series, current, recent = &p.Points, r.points, r.point, r.pointLateness
	}
	current.Open, current.Undisturbed = r.open, nil
	if recent.Count() > 0 {
		current.Lateness = recent.Pack() // not coarse, because it is not stored
	}
	*dest = append(slices.Clone(series[n:]), current)
	return len(series) - n
}

// undecidedNoops returns a function from the arrival of the last noop on an open stream to the number of its
// undecided noops. An undecided noop is overdue, but counts as missed only after the next noop or the end of the
// stream.
func undecidedNoops(at ledger.Instant, c *ledger.Config) func(last ledger.Instant) uint64 {
	clocked, interval, late := c.Counting == ledger.Noops, c.Interval, c.LatenessLimit
	return func(last ledger.Instant) uint64 {
		silent := at - last - late
		if !clocked || silent < interval {
			return 0
		}
		return uint64(silent / interval) // #nosec G115 -- silent is at least interval
	}
}
