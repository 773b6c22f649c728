package verdict

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A feedResult classifies the verdict of a simulated feed.
type feedResult int

const (
	feedExact     feedResult = iota // the verdict passes a clean feed, or names the fault and its clients
	feedUndecided                   // the verdict is invalid
	feedInexact                     // the verdict fails a faulty feed, but with wrong counts
	feedMistaken                    // the feed is faulty, and a finding names a client without a fault
	feedWrong                       // a faulty feed passes, or a clean feed has a finding
	feedResults
)

// assess compares a verdict with the feed.
func (f *simulatedFeed) assess(v *Verdict) feedResult {
	counts := faultCounts(v)
	found := counts != [4]uint64{}
	if f.fault == "clean" {
		switch {
		case found || v.Verdict == Fail:
			return feedWrong
		case v.Verdict == Invalid:
			return feedUndecided
		}
		return feedExact
	}
	for _, finding := range v.Findings {
		isFaulty := slices.ContainsFunc(f.faulty, func(client int) bool { return finding.ID == fmt.Sprint("gold-", client) })
		if !isFaulty && finding.Kind != string(ledger.KindLate) {
			return feedMistaken
		}
	}
	switch {
	case v.Verdict == Pass:
		return feedWrong
	case !found:
		return feedUndecided
	case f.fault == "silent" && (counts[0] == 0 || counts != [4]uint64{counts[0]}), f.fault != "silent" && counts != f.want:
		return feedInexact
	}
	return feedExact
}

// environment returns the number in a variable, or a default.
func environment(t *testing.T, name string, number int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return number
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// A feedTally counts results by cell.
type feedTally struct {
	mu       sync.Mutex
	counts   map[string]*[feedResults]int
	mistakes []string // cells with a feedMistaken
	wrong    []string // sentences of each feedWrong
}

func (r *feedTally) add(f *simulatedFeed, seed uint64, v *Verdict) {
	result := f.assess(v)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cell := range []string{"all", f.fault, "clients: " + f.clients, "content: " + f.content, "layout: " + f.layout, f.fault + " / " + f.content} {
		if r.counts[cell] == nil {
			r.counts[cell] = new([feedResults]int)
		}
		r.counts[cell][result]++
	}
	switch result {
	case feedMistaken:
		r.mistakes = append(r.mistakes, fmt.Sprintf("%s, seed %d", f.name(), seed))
	case feedWrong:
		text := fmt.Sprintf("%s, seed %d: %s", f.name(), seed, v.Sentence)
		for _, finding := range v.Findings {
			text += "\n\t" + finding.Text
		}
		r.wrong = append(r.wrong, text)
	default:
	}
}

func (r *feedTally) log(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		n := r.counts[name]
		t.Logf("%-50s exact %4d, undecided %4d, inexact %4d, mistaken %4d, wrong %4d", name, n[0], n[1], n[2], n[3], n[4])
	}
}

// simulateFeeds simulates feeds of all cells whose name contains a text.
func simulateFeeds(text string, feeds, seed int) *feedTally {
	r := &feedTally{counts: map[string]*[feedResults]int{}}
	var cells sync.WaitGroup
	limit := make(chan struct{}, 4)
	simulate := func(cell simulatedFeed) {
		defer func() { <-limit }()
		for n := range feeds {
			f, feedSeed := cell, uint64(seed+n) // #nosec G115 -- positive
			if strings.Contains(f.name(), text) && f.prepare(feedSeed) {
				r.add(&f, feedSeed, f.judge())
			}
		}
	}
	for _, fault := range simulatedFaults {
		for _, clients := range simulatedClients {
			for _, content := range simulatedContents {
				for layout := range simulatedLayouts {
					limit <- struct{}{}
					cells.Go(func() { simulate(simulatedFeed{fault: fault, clients: clients, content: content, layout: layout}) })
				}
			}
		}
	}
	cells.Wait()
	slices.Sort(r.mistakes)
	slices.Sort(r.wrong)
	return r
}

// No clean feed has a finding, and no faulty feed passes. FEEDS is the number of feeds of each cell, SEED is the first
// seed, and CELL is a part of the names of the cells.
func TestSimulatedFeeds(t *testing.T) {
	t.Parallel()
	r := simulateFeeds(os.Getenv("CELL"), environment(t, "FEEDS", 1), environment(t, "SEED", 1))
	r.log(t)
	t.Log("findings of clients without a fault:\n" + strings.Join(r.mistakes, "\n"))
	require.Empty(t, r.wrong, strings.Join(r.wrong, "\n"))
	if os.Getenv("CELL")+os.Getenv("FEEDS")+os.Getenv("SEED") != "" {
		return
	}
	require.Equal(t, [feedResults]int{253, 0, 0, 0, 0}, *r.counts["content: unique"])
	require.Equal(t, [feedResults]int{128, 70, 0, 0, 0}, *r.counts["clean"])
	require.Equal(t, [feedResults]int{961, 457, 64, 3, 0}, *r.counts["all"])
	require.Equal(t, []string{
		"changed, steady, 5 values, a single client, seed 1",
		"duplicated, several reconnect, constant, a single client, seed 1",
		"swapped, several reconnect, 2 values, a single client, seed 1",
	}, r.mistakes)
}
