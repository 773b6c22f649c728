package verdict

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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

// environment returns the number in an environment variable, or fallback if the variable is not set.
func environment(t *testing.T, name string, fallback int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err, name)
		return n
	}
	return fallback
}

// No clean feed has a finding, and no faulty feed passes. Each combination of fault, clients and content has one
// layout per seed. FEEDS is the number of seeds, SEED is the first one, and CELL selects cells by a part of their name.
func TestSimulatedFeeds(t *testing.T) {
	t.Parallel()
	feeds, first, cell := environment(t, "FEEDS", 3), environment(t, "SEED", 1), os.Getenv("CELL")
	layouts := slices.Sorted(maps.Keys(simulatedLayouts))
	var all, clean, unique [feedResults]int
	for seed := first; seed < first+feeds; seed++ {
		for i, fault := range simulatedFaults {
			for j, clients := range simulatedClients {
				for k, content := range simulatedContents {
					f := simulatedFeed{fault: fault, clients: clients, content: content, layout: layouts[(seed+i+j+k)%len(layouts)]}
					if !strings.Contains(f.name(), cell) || !f.prepare(uint64(seed)) { // #nosec G115 -- positive
						continue
					}
					v := f.judge()
					result := f.assess(v)
					assert.NotEqual(t, feedWrong, result, "%s, seed %d: %s %v", f.name(), seed, v.Sentence, v.Findings)
					if all[result]++; fault == "clean" {
						clean[result]++
					}
					if content == "unique" {
						unique[result]++
					}
					if result == feedMistaken {
						t.Logf("%s, seed %d: a finding names a client without a fault", f.name(), seed)
					}
				}
			}
		}
		if seed == 1 && first == 1 && cell == "" {
			require.Equal(t, [feedResults]int{84, 0, 0, 0, 0}, unique)
			require.Equal(t, [feedResults]int{42, 24, 0, 0, 0}, clean)
			require.Equal(t, [feedResults]int{325, 150, 20, 0, 0}, all)
		}
	}
	t.Log("exact, undecided, inexact, mistaken, wrong:", all)
}
