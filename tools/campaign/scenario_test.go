package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func encode(t *testing.T, sc *scenario) string {
	t.Helper()
	b, err := json.Marshal(sc)
	require.NoError(t, err)
	return string(b)
}

func TestSeedsAreReproducible(t *testing.T) {
	for seed := range uint64(500) {
		require.Equal(t, encode(t, draw(seed, "")), encode(t, draw(seed, "")))
	}
	require.NotEqual(t, encode(t, draw(1, "")), encode(t, draw(2, "")))
}

func TestKindsAndPlansAreValid(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(5000) {
		sc := draw(seed, "")
		count[sc.Group+"/"+sc.Kind]++
		p := sc.Plan
		require.GreaterOrEqual(t, float64(p.Seconds-lead), 2*p.Interval, encode(t, sc))
		require.True(t, p.Seconds >= 8 && p.Seconds <= 20, "a run must take 8 to 20 s: %s", encode(t, sc))
		require.True(t, p.Connections >= 5 && p.Connections <= 150, "a run must have 5 to 150 clients: %s", encode(t, sc))
		require.True(t, sc.Service != nil || sc.Wire.Action == "", "a fault of the wire needs a service in this process")
	}
	all := slices.Concat(soakKinds, suiteKinds)
	for _, f := range families {
		all = append(all, f.faulty...)
	}
	for _, k := range all {
		require.NotZero(t, count[k.group+"/"+k.name], "no seed draws %s/%s", k.group, k.name)
	}
	clean := count["clean/clean"]
	require.InDelta(t, 2500, clean, 200, "half of the scenarios must be clean")
}

// A fault in the middle of a stream affects a noop that is neither the first nor one of the last.
func TestMiddleFaultHasNoopsAroundIt(t *testing.T) {
	for seed := range uint64(2000) {
		sc := draw(seed, "lose")
		require.GreaterOrEqual(t, sc.Strike.From, 2, encode(t, sc))
		require.Less(t, sc.Strike.From, sc.Plan.noops(), encode(t, sc))
	}
}

// A clean run is valid only if most messages are published at least streamMargin after the start and before the end of
// a stream.
func TestMostMessagesOfACleanHubAreChecked(t *testing.T) {
	for seed := range uint64(5000) {
		sc := draw(seed, "")
		if !sc.isClean() || sc.Family != "published" || sc.Hub.End != "server" || sc.Hub.Resume != "none" {
			continue
		}
		for _, share := range []float64{1.03, 1.17} {
			lifetime := time.Duration(share * sc.Hub.Lifetime * float64(time.Second))
			outage := 2*time.Duration(sc.Hub.Retry)*time.Millisecond + hubSlack
			published, checked := 0, 0
			for at := 2 * time.Second; at < sc.Plan.hold()-2*time.Second; at += 10 * time.Millisecond {
				age := at % (lifetime + outage)
				published, checked = published+1, checked+btoi(age > streamMargin && age < lifetime-streamMargin)
			}
			require.GreaterOrEqual(t, 2*checked, published, encode(t, sc))
		}
	}
}

// A name that several families have selects one of them.
func TestKindsByName(t *testing.T) {
	for _, f := range families {
		for _, k := range f.faulty {
			for seed := range uint64(20) {
				sc := draw(seed, k.name)
				require.Equal(t, sc.Family, sc.Group, k.name)
			}
		}
	}
}
