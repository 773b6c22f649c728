package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of disconnects and pauses of a run's own streams, by their names in CUTS.
const (
	CutFIN   = "fin"   // the client closes the connection
	CutRST   = "rst"   // the client resets the connection
	CutHalf  = "half"  // the connection stays half-open: the client sends nothing, not even acknowledgments
	CutPause = "pause" // the reader stops for some time, and continues on the same connection
)

// CutKinds returns all kinds, in the order in which tables list them.
func CutKinds() []string { return []string{CutFIN, CutRST, CutHalf, CutPause} }

const (
	defaultShares    = "fin:1,rst:1,half:1,pause:1"
	defaultPause     = 5 // seconds
	maxShare         = 1000
	maxCuts          = 1000 // per second
	reconnectSeconds = 3    // seconds for a client to reconnect: a delay of 1 s to 2 s, and a connect

	// publishMargin is the time in seconds from the first stream to the first published message
	// (k6/soak/publishing.go). It is also the time from the last published message to the end of the streams.
	publishMargin = 2
)

// HasCuts reports whether the run disconnects or pauses its own streams.
func (p *Plan) HasCuts() bool { return p.CutsPerSecond > 0 }

// Pause returns the duration of a pause of a reader.
func (p *Plan) Pause() time.Duration {
	return time.Duration(cmp.Or(p.PauseS, defaultPause) * float64(time.Second))
}

// shares returns the shares of CUTS, in the order of CutKinds. A kind that CUTS does not name has the share 0.
func (p *Plan) shares() (out []int, err error) {
	kinds := CutKinds()
	out = make([]int, len(kinds))
	sum := 0
	for part := range strings.SplitSeq(cmp.Or(p.CutShares, defaultShares), ",") {
		name, text, hasValue := strings.Cut(strings.TrimSpace(part), ":")
		i := slices.Index(kinds, name)
		if i < 0 {
			return nil, fmt.Errorf("CUTS must be shares of fin, rst, half and pause, such as %s, got %q", defaultShares, p.CutShares)
		}
		share := 1
		if hasValue {
			if share, err = strconv.Atoi(text); err != nil || share < 0 || share > maxShare {
				return nil, fmt.Errorf("the share of %s in CUTS must be a whole number up to %d, got %q", name, maxShare, text)
			}
		}
		out[i] += share
		sum += share
	}
	if sum == 0 {
		return nil, fmt.Errorf("CUTS must have a share over 0, got %q", p.CutShares)
	}
	return out, nil
}

// CutPeriod returns the period in which streams are disconnected or paused, relative to the start of the first stream.
// Before the period, each stream can receive a message. After the period, a client can end a pause, reconnect, and
// receive a message. If the run is too short for this, from and to are equal.
func (p *Plan) CutPeriod() (from, to time.Duration) {
	interval := p.Interval()
	from = publishMargin*time.Second + interval + time.Second
	to = p.Hold() - publishMargin*time.Second - interval - reconnectSeconds*time.Second
	if shares, err := p.shares(); err == nil && shares[3] > 0 {
		to -= p.Pause()
	}
	return from, max(from, to)
}

// A Cut is a planned disconnect or pause.
type Cut struct {
	At   time.Duration // since the start of the first stream
	Kind string        // one of CutKinds
}

// PlannedCuts returns the cuts of all runners, ordered by time. They depend only on the plan, which includes the seed.
func (p *Plan) PlannedCuts() (out []Cut) {
	shares, err := p.shares()
	if err != nil || !p.HasCuts() {
		return nil
	}
	from, to := p.CutPeriod()
	count := int(p.CutsPerSecond * (to - from).Seconds())
	random := rand.New(rand.NewPCG(uint64(p.Seed), 0)) // #nosec G115 G404 -- equal seeds must give equal cuts; no secret
	kinds := deal(shares, count)
	random.Shuffle(count, func(a, b int) { kinds[a], kinds[b] = kinds[b], kinds[a] })
	for i, kind := range kinds {
		at := (float64(i) + random.Float64()) / p.CutsPerSecond
		out = append(out, Cut{At: from + time.Duration(at*float64(time.Second)), Kind: kind})
	}
	return out
}

// deal returns a list of kinds with the given length, in proportion to their shares. Each kind whose share is over 0
// occurs at least once if count is large enough.
func deal(shares []int, count int) (out []string) {
	kinds := CutKinds()
	counts := make([]int, len(shares))
	for range count {
		next := -1 // the kind that is furthest behind its share
		for i, share := range shares {
			if share > 0 && (next < 0 || counts[i]*shares[next] < counts[next]*share) {
				next = i
			}
		}
		counts[next]++
		out = append(out, kinds[next])
	}
	return out
}

func (p *Plan) checkCuts() error {
	if p.AllowGaps && !p.Published() {
		return errors.New("ALLOW_ANNOUNCED_GAPS needs published messages, because their numbers show which messages are missing; set TOPICS and PUBLISH_RATE, or remove ALLOW_ANNOUNCED_GAPS")
	}
	if !p.HasCuts() {
		return nil
	}
	if _, err := p.shares(); err != nil {
		return err
	}
	from, to := p.CutPeriod()
	switch {
	case !p.Reconnect:
		return errors.New("CUTS_PER_SECOND needs RECONNECT=1, because clients must reconnect after a disconnect")
	case len(p.PlannedCuts()) == 0:
		return fmt.Errorf("SECONDS must leave time for cuts after the first message of each stream and before its last, got %v at %v cuts per second; raise SECONDS or CUTS_PER_SECOND, or shorten PAUSE",
			to-from, p.CutsPerSecond)
	case p.CutsPerSecond*p.cutOutage() > float64(p.Connections):
		return fmt.Errorf("CUTS_PER_SECOND must be at most %.3g with CONNECTIONS %d, because a client can be disconnected again only after about %.3g s, got %v; lower CUTS_PER_SECOND, or raise CONNECTIONS",
			float64(p.Connections)/p.cutOutage(), p.Connections, p.cutOutage(), p.CutsPerSecond)
	}
	return nil
}

// cutOutage returns the seconds from a disconnect until the same client can be disconnected again.
func (p *Plan) cutOutage() float64 { return reconnectSeconds + p.NoopInterval }

// MinStreamsForCuts returns the minimum number of streams with which CUTS_PER_SECOND is possible.
func (p *Plan) MinStreamsForCuts() int { return int(math.Ceil(p.CutsPerSecond * p.cutOutage())) }
