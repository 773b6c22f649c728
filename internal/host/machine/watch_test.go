package machine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Unix(1_700_000_000, 0)

// add adds readings 5 s apart, and returns the record.
func add(w *Watch, readings ...Reading) *Record {
	for i, r := range readings {
		w.Add(start.Add(time.Duration(i)*5*time.Second), r)
	}
	return w.Record()
}

func fakeSource(t *testing.T) source {
	return source{
		proc:         t.TempDir(),
		cardCounters: func() (map[string]uint64, bool, error) { return nil, false, nil },
		suspended:    func() (time.Duration, bool) { return 0, false },
		clocks:       clocks,
	}
}

// at returns the time that is the given number of seconds after start, in Unix microseconds.
func at(seconds int) int64 { return start.Add(time.Duration(seconds) * time.Second).UnixMicro() }

func TestRecordHasIncreasesWithTimes(t *testing.T) {
	t.Parallel()
	const dropped = "conntrack_allowance_exceeded"
	r := add(NewRemote("stack", time.Second),
		Reading{dropped: 100, OutSegs: 5}, Reading{dropped: 100, OutSegs: 9}, Reading{dropped: 110, OutSegs: 20},
		Reading{dropped: 114, OutSegs: 30}, Reading{dropped: 114}, Reading{dropped: 115})
	require.Equal(t, []Series{
		{Name: dropped, Begin: 100, End: 115, Increase: 15, Stretches: []Stretch{{at(5), at(15), 14}, {at(20), at(25), 1}}},
		{Name: OutSegs, Begin: 5, End: 30, Increase: 25},
	}, r.Counters, "successive increases must be one stretch; OutSegs must have no stretches, because it is informational")
	require.Equal(t, []int64{at(0), at(25)}, []int64{r.FromUS, r.ToUS})
	require.NoError(t, r.Check())
}

func TestIncreaseIgnoresTheDecreaseOfAReset(t *testing.T) {
	t.Parallel()
	r := add(NewRemote("", time.Second),
		Reading{OOMKills: 3}, Reading{OOMKills: 4}, Reading{OOMKills: 0}, Reading{}, Reading{OOMKills: 2})
	require.Equal(t, Series{
		Name: OOMKills, Begin: 3, End: 2, Increase: 3, Stretches: []Stretch{{at(0), at(5), 1}, {at(15), at(20), 2}},
	}, *r.Series(OOMKills))
}

// A little steal is normal on a shared machine, so only steal that may delay a message has a stretch.
func TestOnlyLargeStealHasAStretch(t *testing.T) {
	t.Parallel()
	r := add(NewRemote("", time.Second), Reading{Steal: 10}, Reading{Steal: 10.4}, Reading{Steal: 11.0}, Reading{Steal: 11.1})
	s := r.Series(Steal)
	require.InDelta(t, 1.1, s.Increase, 1e-9)
	require.Len(t, s.Stretches, 1)
	require.Equal(t, []int64{at(5), at(10)}, []int64{s.Stretches[0].FromUS, s.Stretches[0].ToUS})
}

func TestRecordHasHighestShareOfALimit(t *testing.T) {
	t.Parallel()
	entries := func(n float64) Reading { return Reading{ConntrackEntries: n, "nf_conntrack_max": 100} }
	r := add(NewRemote("", time.Second), entries(10), entries(95), entries(20))
	require.Equal(t, Series{
		Name: ConntrackEntries, Begin: 10, End: 20, MaxShare: .95, MaxShareUS: at(5),
	}, *r.Series(ConntrackEntries))
}

// The size of a record does not depend on the length of the run or on the number of increases.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	w := NewRemote("", time.Second)
	const samples = 20_000
	for i := range samples {
		w.Add(start.Add(time.Duration(i)*5*time.Second), Reading{OOMKills: float64(i / 2)})
		for range 2 { // the second one is a duplicate
			w.AddNotice(Notice{Name: "system-reboot", AtUS: int64(i)})
		}
	}
	r := w.Record()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(text), 32<<10)
	var sum float64
	for _, stretch := range r.Series(OOMKills).Stretches {
		sum += stretch.Increase
		require.Less(t, stretch.To().Sub(stretch.From()), samples*5*time.Second/20, "no stretch must cover a twentieth of the run")
	}
	require.InDelta(t, samples/2-1, sum, 0, "the stretches must contain all increases")
	require.Len(t, r.Notices, maxNotices)
	require.EqualValues(t, maxNotices-1, r.Notices[maxNotices-1].AtUS)
	require.NoError(t, r.Check())
}

func TestNameOfARunnerHasAPrefix(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"runner-1": true, "runners.example.org:9100": false, "stack": false, "": false} {
		require.Equal(t, want, (&Record{Name: name}).IsRunner(), name)
	}
}

func TestImpossibleRecordsAreRejected(t *testing.T) {
	t.Parallel()
	require.NoError(t, (*Record)(nil).Check())
	long := make([]byte, maxText+1)
	for want, edit := range map[string]func(r *Record){
		"texts of the machine must have at most 200 bytes, got 201":   func(r *Record) { r.Boot = string(long) },
		"notices of the machine must have at most 200 bytes, got 201": func(r *Record) { r.Notices = []Notice{{Name: string(long)}} },
		"impossible record":                        func(r *Record) { r.ToUS = r.FromUS - 1 },
		"notices 21":                               func(r *Record) { r.Notices = make([]Notice, maxNotices+1) },
		"cores -1":                                 func(r *Record) { r.Cores = -1 },
		`counter "aaaaaaaaaa`:                      func(r *Record) { r.Counters[0].Name = strings.Repeat("a", maxText+1) },
		"without a time":                           func(r *Record) { r.Counters[0].Stretches = nil },
		"grew by -1":                               func(r *Record) { r.Counters[0].Stretches[0].Increase = -1 },
		"grew by 9.1":                              func(r *Record) { r.Counters[0].Stretches[0].Increase = 9.1e15 },
		"of the machine: 9.1e+15":                  func(r *Record) { r.Counters[0].MaxShare = 9.1e15 },
		"from 1700000005000000 µs":                 func(r *Record) { r.Counters[0].Stretches[0].FromUS, r.Counters[0].Stretches[0].ToUS = at(5), at(4) },
		"from 1699999999000000 µs":                 func(r *Record) { r.Counters[0].Stretches[0].FromUS = at(-1) },
		"counter oom_kill of the machine: -1":      func(r *Record) { r.Counters[0].Increase = -1 },
		"counter oom_kill of the machine: it grew": func(r *Record) { r.Counters[0].Stretches[0].ToUS = r.ToUS + 1 },
		"at most 200 increases, got 201":           func(r *Record) { r.Counters[0].Stretches = make([]Stretch, maxStretches+1) },
		"counters 100":                             func(r *Record) { r.Counters = make([]Series, 100) },
	} {
		r := add(NewRemote("", time.Second), Reading{OOMKills: 3}, Reading{OOMKills: 4})
		require.NoError(t, r.Check())
		edit(r)
		require.ErrorContains(t, r.Check(), want)
	}
}

func TestSampleReadsCountersOfKernelAndENA(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	for name, text := range map[string]string{
		"stat":                                 "cpu  1 2 3 4 5 6 7 850 0 0\ncpu0 1 2 3 4 5 6 7 850 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\nbtime 1700000000\n",
		"vmstat":                               "nr_free_pages 7\noom_kill 3\noom_kill_other 9\n",
		"sys/net/netfilter/nf_conntrack_count": "41\n",
		"sys/net/netfilter/nf_conntrack_max":   "100\n",
		"sys/kernel/random/boot_id":            "b-1\n",
		"1/stat":                               "1 (it) S 0",
		"1/net/snmp":                           "Tcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 1000 12\n",
		"1/net/netstat":                        "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 5 7\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink("1", filepath.Join(proc, "self")))
	ena := map[string]uint64{"bw_in_allowance_exceeded": 1, "conntrack_allowance_exceeded": 4, "tx_timeout": 8}
	var enaErr error
	s := fakeSource(t)
	s.proc, s.cardCounters = proc, func() (map[string]uint64, bool, error) { return ena, true, enaErr }
	want := Reading{
		Steal: 8.5, OOMKills: 3, ConntrackEntries: 41, "nf_conntrack_max": 100,
		OutSegs: 1000, Retrans: 12, Overflows: 5, Drops: 7,
		"bw_in_allowance_exceeded": 1, "conntrack_allowance_exceeded": 4,
	}
	require.Equal(t, want, s.read())

	w := newWatch(s, time.Second)
	w.Sample(start)
	ena["conntrack_allowance_exceeded"] += 14
	w.Sample(start.Add(5 * time.Second))
	r := w.Record()
	require.Equal(t, []any{"b-1", 2, int64(1_700_000_000), true}, []any{r.Boot, r.Cores, r.BootedUnix, r.Cards})
	require.Equal(t, []Stretch{{at(0), at(5), 14}}, r.Series("conntrack_allowance_exceeded").Stretches)
	require.Zero(t, r.Series("bw_in_allowance_exceeded").Increase)

	enaErr = errors.New("no such device")
	w.Sample(start.Add(10 * time.Second))
	require.Equal(t, r.Series("conntrack_allowance_exceeded"), w.Record().Series("conntrack_allowance_exceeded"),
		"a failed reading must not change the counter")
}

func TestRecordWithoutCountersHasAReason(t *testing.T) {
	t.Parallel()
	s := fakeSource(t)
	s.proc = filepath.Join(s.proc, "missing")
	w := newWatch(s, time.Second)
	w.Sample(start)
	require.Contains(t, w.Record().Unknown, "no counters: they need Linux and a readable /proc")
}

func TestSampleReadsThisMachine(t *testing.T) {
	t.Parallel()
	w := New(time.Second)
	w.Sample(time.Now())
	r := w.Record()
	require.NotEmpty(t, r.Boot)
	require.NotEmpty(t, r.Namespace)
	require.NotZero(t, r.Cores)
	for _, name := range []string{Steal, Overflows, Drops, Retrans, OutSegs, OOMKills, Suspension} {
		require.NotNil(t, r.Series(name), name)
	}
	require.Nil(t, r.Series("pps_allowance_exceeded"), "a machine that is not on AWS must not have AWS's counters")
	devices, err := filepath.Glob("/sys/class/net/*/device")
	require.NoError(t, err)
	require.Equal(t, len(devices) > 0, r.Cards, "Cards must report only physical network cards: %q", devices)
}

func TestRecordHasSuspensions(t *testing.T) {
	t.Parallel()
	suspended := 3 * time.Hour
	s := fakeSource(t)
	s.suspended = func() (time.Duration, bool) { return suspended, true }
	w := newWatch(s, time.Second)
	w.Sample(start)
	for range 2 { // inaccuracies below the resolution
		suspended -= 20 * time.Microsecond
		w.Sample(start.Add(3 * time.Second))
		suspended += 20 * time.Microsecond
		w.Sample(start.Add(5 * time.Second))
	}
	require.Zero(t, w.Record().Series(Suspension).Increase)
	suspended += 10 * time.Minute
	w.Sample(start.Add(10 * time.Second))
	series := w.Record().Series(Suspension)
	require.InDelta(t, 600, series.Increase, .01)
	require.Equal(t, []Stretch{{at(5), at(10), series.Increase}}, series.Stretches)
}

func TestClockStepIgnoresSlewingAndSuspension(t *testing.T) {
	t.Parallel()
	var wall, monotonic, suspended time.Duration
	s := fakeSource(t)
	s.suspended = func() (time.Duration, bool) { return suspended, true }
	s.clocks = func() (time.Duration, time.Duration) { return wall, monotonic }
	w := newWatch(s, time.Second)
	sampleAfter := func(step time.Duration) *Series { // samples after 5 s, in which the wall clock stepped
		monotonic += 5 * time.Second
		wall += 5*time.Second + step
		w.Sample(start.Add(monotonic))
		return w.Record().Series(ClockStep)
	}
	sampleAfter(time.Hour)                                    // before the first reading
	require.Zero(t, sampleAfter(2*time.Millisecond).Increase) // slewing
	suspended += time.Minute
	require.Zero(t, sampleAfter(time.Minute).Increase)
	require.InDelta(t, 10, sampleAfter(10*time.Second).Increase, 1e-9)
	require.InDelta(t, 13, sampleAfter(-3*time.Second).Increase, 1e-9)
	require.Len(t, w.Record().Series(ClockStep).Stretches, 1, "two successive intervals must be one stretch")
}

// Any reading of the suspension may fail. A clock step is detected at the next sample whose suspension is known. If the
// system never reports a suspension, the next sample detects the step.
func TestClockStepWithUnknownSuspension(t *testing.T) {
	t.Parallel()
	never := func(int) bool { return false }
	for name, c := range map[string]struct {
		known func(n int) bool
		step  time.Duration // at sample 2
		want  float64
	}{
		"the first is unknown": {known: func(n int) bool { return n > 0 }},
		"one is unknown":       {known: func(n int) bool { return n != 2 }},
		"a step while unknown": {known: func(n int) bool { return n != 2 }, step: time.Minute, want: 60},
		"all are unknown":      {known: never, step: time.Minute, want: 60},
	} {
		n := 0
		s := fakeSource(t)
		s.suspended = func() (time.Duration, bool) { return time.Hour, c.known(n) }
		s.clocks = func() (time.Duration, time.Duration) {
			monotonic := time.Duration(n) * time.Second
			return monotonic + 2*time.Hour + time.Duration(n/2)*c.step, monotonic
		}
		w := newWatch(s, time.Second)
		for ; n < 4; n++ {
			w.Sample(start.Add(time.Duration(n) * time.Second))
		}
		require.InDelta(t, c.want, w.Record().Series(ClockStep).Increase, 1e-9, name)
	}
}
