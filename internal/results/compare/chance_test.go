package compare

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSummaries(t *testing.T) {
	t.Parallel()
	s := Summarize([]float64{4, 1, 3})
	require.Equal(t, Summary{Median: 3, Min: 1, Max: 4}, s)
	require.InDelta(t, 1, s.Spread(), 1e-9)
	require.InDelta(t, 2.5, Summarize([]float64{4, 1, 2, 3}).Median, 1e-9)
	require.Zero(t, Summarize([]float64{0, 0, 0}).Spread())
}

// The values of Student's t for 95 % are from a table: 12.706 for one degree of freedom, and 4.303 for two.
func TestNoiseBand(t *testing.T) {
	t.Parallel()
	b, ok := noiseBand([]float64{9, 10, 11}, 1) // mean 10, deviation 1
	require.True(t, ok)
	require.InDelta(t, 10+4.303*math.Sqrt(1+1./3), b.High, .001)
	require.InDelta(t, 10-4.303*math.Sqrt(1+1./3), b.Low, .001)
	b, _ = noiseBand([]float64{9, 11}, 2)
	require.InDelta(t, 10+12.706*math.Sqrt2, b.High, .001)
	require.True(t, b.Contains(10))
	require.False(t, b.Contains(50))
	_, ok = noiseBand([]float64{9}, 1)
	require.False(t, ok, "one run has no spread, so there must be no band")
	b, ok = noiseBand([]float64{7, 7, 7}, 1)
	require.True(t, ok)
	require.Equal(t, Band{7, 7}, b)
}

func TestMinP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, m int
		want float64
	}{{3, 3, 2. / 20}, {4, 4, 2. / 70}, {3, 1, .5}, {1, 1, 1}, {5, 3, 2. / 56}, {38, 1, 2. / 39}, {39, 1, 2. / 40}, {5000, 5000, 0}} {
		require.InDelta(t, c.want, MinP(c.n, c.m), 1e-12, "%d against %d", c.n, c.m)
	}
}

func TestDiffer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		old, recent []float64
		band        bool
		p           float64
		significant bool
	}{
		{"three against three, far apart", []float64{9, 10, 11}, []float64{90, 91, 92}, true, 0, true},
		{"four against four, one pair crossed", []float64{1, 2, 3, 5}, []float64{4, 6, 7, 8}, false, 4. / 70, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, err := differ(c.old, c.recent)
			require.NoError(t, err)
			require.Equal(t, c.band, d.Band != nil)
			require.InDelta(t, c.p, d.P, 1e-9)
			require.Equal(t, c.significant, d.Significant)
		})
	}
	_, err := differ([]float64{1}, []float64{2})
	require.ErrorContains(t, err, "at least two old runs")
}

// With each method, equal runs differ significantly in at most about one case in twenty.
func TestFalsePositiveRate(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = 100 + 10*random.NormFloat64()
		}
		return out
	}
	for _, n := range [][2]int{{2, 1}, {3, 1}, {3, 3}, {4, 4}, {5, 5}, {10, 3}} {
		const trials = 4000
		alarms := 0
		for range trials {
			d, err := differ(draw(n[0]), draw(n[1]))
			require.NoError(t, err)
			if d.Significant {
				alarms++
			}
		}
		share := float64(alarms) / trials
		require.LessOrEqual(t, share, alpha+.01, "%d against %d", n[0], n[1])
		require.GreaterOrEqual(t, share, .02, "%d against %d: the test reports too few differences", n[0], n[1])
	}
}

// A line feed in a test id would forge lines of a report.
func TestOpenRejectsControlCharacters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "verdict.json"), []byte(`{"schema": 3, "testid": "a\nPASS", "plan": {"connections": 1}}`), 0o600))
	_, err := Open(dir)
	require.ErrorContains(t, err, "verdict.json: TESTID must be the name of a folder")
}
