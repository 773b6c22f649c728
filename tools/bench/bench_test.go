package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	got, err := parseStat("812 (k6 (a) b) S 1 812 812 0 -1 4194560 5000 0 3 0 1234 66 0 0 20 0 9 0 424242 1 2 3")
	require.NoError(t, err)
	require.Equal(t, 13*time.Second, got)
	for _, bad := range []string{"", "812 (k6) S 1 2", "1 (k6) S 1 812 812 0 -1 1 5 0 3 0 x 66 0"} {
		_, err := parseStat(bad)
		require.Error(t, err, bad)
	}
}

func TestParseMemory(t *testing.T) {
	const status = "Name:\tk6\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"
	got, err := parseMemory(status, "VmRSS")
	require.NoError(t, err)
	require.InDelta(t, 1<<20, got, 0)
	_, err = parseMemory(status, "Pss")
	require.Error(t, err)
}

func TestFit(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5}
	exact, err := fit(x, []float64{1, 3, 5, 7, 9, 11})
	require.NoError(t, err)
	require.InDelta(t, 2, exact.value, 1e-9)
	require.InDelta(t, exact.low, exact.high, 1e-9)

	// By hand: 34.6/17.5, and 2.776 (t for 4 degrees) × the standard error.
	noisy, err := fit(x, []float64{1.1, 2.9, 5.2, 6.8, 9.1, 10.9})
	require.NoError(t, err)
	require.InDelta(t, 1.9771, noisy.value, 1e-3)
	require.InDelta(t, 0.1105, noisy.high-noisy.value, 1e-3)

	_, err = fit(x[:3], x[:3])
	require.Error(t, err)
	_, err = fit([]float64{1, 1, 1, 1}, []float64{1, 2, 3, 4})
	require.Error(t, err)
}

func TestStudent(t *testing.T) {
	for freedom, want := range map[int]float64{3: 3.182, 5: 2.571, 10: 2.228, 30: 2.042, 1000: 1.962} {
		require.InEpsilon(t, want, student(freedom), 0.02, "%d degrees of freedom", freedom)
	}
}

func TestLowest(t *testing.T) {
	x, y := lowest([]float64{0, 1, 2, 3, 4, 5, 6}, []float64{5, 4, 6, 9, 7, 8, 1}, 3)
	require.Equal(t, []float64{1, 4}, x)
	require.Equal(t, []float64{4, 7}, y)
}

func TestRawLine(t *testing.T) {
	var c rawConn
	noops := 0
	for _, line := range []string{"HTTP/1.1 200 OK\r\n", "\r\n", "2a\r\n", "id: 1\n", ": sent=12\n", "data: 0\n", "\n", "\r\n", "id: 4\n", "data: 0\n", "data: x\n"} {
		if c.line([]byte(line)) {
			noops++
		}
	}
	require.Equal(t, 2, noops)
	require.EqualValues(t, 2, c.received)
	require.EqualValues(t, 2, c.missed)
}

func TestSpreads(t *testing.T) {
	ms := int64(time.Millisecond)
	round := func(at ...int64) (out []arrival) {
		for _, a := range at {
			out = append(out, arrival{kernel: a * ms, reader: (a + 1) * ms})
		}
		return out
	}
	conns := []rawConn{{arrivals: round(10_000, 11_000, 12_000)}, {arrivals: round(11_030, 12_010)}}
	kernel, reader := spreads(conns)
	require.InDeltaSlice(t, []float64{0.030, 0.010}, kernel, 1e-9, "the first round did not reach both")
	require.InDeltaSlice(t, []float64{0.030, 0.010}, reader, 1e-9)
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		figure Figure
		quick  bool
		want   Verdict
	}{
		{single("", "KB", 3), false, None},
		{single("", "KB", 3).limited(3), false, Pass},
		{single("", "KB", 3.1).limited(3), false, Over},
		{single("", "KB", 3.1).limited(3), true, None},
		{single("", "KB", math.NaN()).limited(3), false, Over},
		{Figure{Value: 1, Low: -1, High: 3, Interval: true, Limit: 2}, false, Undecided},
		{Figure{Value: 1, Low: -1, High: 2, Interval: true, Limit: 2}, false, Pass},
		{Figure{Value: 4, Low: 3, High: 5, Interval: true, Limit: 2}, false, Over},
	} {
		c.figure.judge(c.quick)
		require.Equal(t, c.want, c.figure.Verdict, "%+v", c.figure)
	}
}
