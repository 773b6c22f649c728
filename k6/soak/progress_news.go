package soak

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// maxFindings is the maximum number of findings of a line of progress: a service that restarts drops all streams in
// one second.
const maxFindings = 20

// progressNews is the content of a line of progress in addition to the sums: the findings since the line before, and
// the series. The zero value is ready to use.
type progressNews struct {
	reported    int                   // buckets that ended, and were told
	faulty      map[string]faultState // connections on which something was wrong, by id
	endsStreams bool                  // streams end on purpose: one that is followed by another is no news
}

// A faultState is the faults of a connection at its last check.
type faultState struct {
	missed, faults uint64
	lost           int // streams, also those that others followed
	state          ledger.State
}

func faultStateOf(r *ledger.Record) faultState {
	b := faultState{missed: r.Missed(), faults: r.Faults(), lost: r.Survived}
	if r.State == ledger.Dropped || r.State == ledger.Refused {
		b.state = r.State
	}
	return b
}

// report returns the progress of a recorder, with what is new.
func (n *progressNews) report(r *recorder) shard.Progress {
	now := r.wall(time.Now()).UnixMilli()
	n.endsStreams = r.endsStreams()
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
			found = append(found, shard.FoundFault{AtMS: now, ID: c.ID, What: text})
		default:
			unlisted++
		}
	})
	p.Found, p.Unlisted = found, unlisted
	p.Buckets, p.Lateness = r.seriesFrom(n.reported)
	n.reported += len(p.Buckets) - 1
	return p
}

// hasFinding reports whether a connection, open or not, had a finding.
func (n *progressNews) hasFinding(id string) bool {
	_, known := n.faulty[id]
	return known
}

// describeChange returns the faults of a connection since its last check; "" for none.
func (n *progressNews) describeChange(c *ledger.Record, excluded bool) string {
	current := faultStateOf(c)
	if excluded && current.state == ledger.Dropped { // it was to end
		current.state = ""
	}
	previous, known := n.faulty[c.ID]
	if current == previous || !known && current == (faultState{}) {
		return ""
	}
	if n.faulty == nil {
		n.faulty = map[string]faultState{}
	}
	n.faulty[c.ID] = current
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
	case current.lost > previous.lost && !n.endsStreams:
		parts = append(parts, "lost its stream, and is back")
	}
	return strings.Join(parts, ", ")
}

// endsStreams reports whether the run disconnects streams or the service limits their lifetime.
func (r *recorder) endsStreams() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Cuts || r.config.Lifetime > 0
}

// seriesFrom returns the complete buckets from the nth on, the present one, and the lateness of all noops.
func (r *recorder) seriesFrom(n int) (buckets []shard.Bucket, lateness *shard.Packed) {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	now := r.bucket
	now.Open, now.Undisturbed = r.open, nil
	if r.recent.Count() > 0 {
		now.Lateness = r.recent.Pack() // not coarse, as it is not kept
	}
	return append(append([]shard.Bucket(nil), r.series[n:]...), now), r.lateness.Pack()
}

// dueBy returns a function that counts the noops that an open connection expects by an instant, given the arrival of the last one, and
// that have neither arrived nor count as missed: a silent stream is undecided until its next noop or its end.
func dueBy(at ledger.Instant, c *ledger.Config) func(last ledger.Instant) uint64 {
	clocked, interval, late := c.Counting == ledger.Noops, c.Interval, c.Late
	return func(last ledger.Instant) uint64 {
		silent := at - last - late
		if !clocked || silent < interval {
			return 0
		}
		return uint64(silent / interval) // #nosec G115 -- silent is at least interval
	}
}
