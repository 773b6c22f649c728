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

// add adds readings 5 s apart.
func add(w *Watch, readings ...Reading) *Record {
	for i, r := range readings {
		w.Add(start.Add(time.Duration(i)*5*time.Second), r)
	}
	return w.Record()
}

func at(seconds int) int64 { return start.Add(time.Duration(seconds) * time.Second).UnixMicro() }

func TestRecordHasIncreasesWithTimes(t *testing.T) {
	t.Parallel()
	const dropped = "conntrack_allowance_exceeded"
	r := add(Follow("stack", time.Second),
		Reading{dropped: 100, OutSegs: 5}, Reading{dropped: 100, OutSegs: 9}, Reading{dropped: 110, OutSegs: 20}, Reading{dropped: 114, OutSegs: 30}, Reading{dropped: 114}, Reading{dropped: 115})
	require.Equal(t, []Series{
		{Name: dropped, Begin: 100, End: 115, Increase: 15, Stretches: []Stretch{{at(5), at(15), 14}, {at(20), at(25), 1}}},
		{Name: OutSegs, Begin: 5, End: 30, Increase: 25},
	}, r.Counters, "successive increases are one stretch; a counter that always grows has none")
	require.Equal(t, []int64{at(0), at(25)}, []int64{r.FromUS, r.ToUS})
	require.NoError(t, r.Check())
}

func TestIncreaseIncludesResetsOfACounter(t *testing.T) {
	t.Parallel()
	r := add(Follow("", time.Second), Reading{OOMKills: 3}, Reading{OOMKills: 4}, Reading{OOMKills: 0}, Reading{}, Reading{OOMKills: 2})
	require.Equal(t, Series{Name: OOMKills, Begin: 3, End: 2, Increase: 3, Stretches: []Stretch{{at(0), at(5), 1}, {at(15), at(20), 2}}}, *r.Series(OOMKills))
}

// A little steal is normal on a shared machine, so only steal that may delay a message has a time.
func TestOnlyLargeStealHasATime(t *testing.T) {
	t.Parallel()
	r := add(Follow("", time.Second), Reading{Steal: 10}, Reading{Steal: 10.4}, Reading{Steal: 11.0}, Reading{Steal: 11.1})
	s := r.Series(Steal)
	require.InDelta(t, 1.1, s.Increase, 1e-9)
	require.Len(t, s.Stretches, 1)
	require.Equal(t, []int64{at(5), at(10)}, []int64{s.Stretches[0].FromUS, s.Stretches[0].ToUS})
}

func TestHighestShareOfATable(t *testing.T) {
	t.Parallel()
	r := add(Follow("", time.Second), Reading{ConntrackEntries: 10, "nf_conntrack_max": 100}, Reading{ConntrackEntries: 95, "nf_conntrack_max": 100}, Reading{ConntrackEntries: 20, "nf_conntrack_max": 100})
	require.Equal(t, Series{Name: ConntrackEntries, Begin: 10, End: 20, MaxShare: .95, MaxShareUS: at(5)}, *r.Series(ConntrackEntries))
}

// The size of a record does not depend on the length of the run or on the number of increases.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	w := Follow("", time.Second)
	const samples = 20_000
	for i := range samples {
		w.Add(start.Add(time.Duration(i)*5*time.Second), Reading{OOMKills: float64(i / 2)})
		w.Notice(Notice{Name: "system-reboot", AtUS: int64(i)})
	}
	r := w.Record()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(text), 32<<10)
	var sum float64
	for _, m := range r.Series(OOMKills).Stretches {
		sum += m.By
	}
	require.InDelta(t, samples/2-1, sum, 0, "the stretches contain all increases")
	require.Len(t, r.Notices, maxNotices)
	for _, m := range r.Series(OOMKills).Stretches {
		require.Less(t, m.To().Sub(m.From()), samples*5*time.Second/20, "no stretch covers most of the run")
	}
	require.NoError(t, r.Check())
}

func TestNoticeIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := Follow("", time.Second)
	all := []Notice{{Name: "system-reboot", AtUS: 5}, {Name: "system-reboot", AtUS: 9}, {Name: "spot", AtUS: 9}}
	for range 2 {
		for _, n := range all {
			w.Notice(n)
		}
	}
	require.Equal(t, all, w.Record().Notices)
}

func TestImpossibleRecordsAreRejected(t *testing.T) {
	t.Parallel()
	require.NoError(t, (*Record)(nil).Check())
	long := make([]byte, maxText+1)
	for want, edit := range map[string]func(r *Record){
		"texts of the machine must have at most 200 characters, got 201":   func(r *Record) { r.Boot = string(long) },
		"notices of the machine must have at most 200 characters, got 201": func(r *Record) { r.Notices = []Notice{{Name: string(long)}} },
		"impossible record":                        func(r *Record) { r.ToUS = r.FromUS - 1 },
		"21 notices":                               func(r *Record) { r.Notices = make([]Notice, maxNotices+1) },
		"-1 cores":                                 func(r *Record) { r.Cores = -1 },
		`counter "aaaaaaaaaa`:                      func(r *Record) { r.Counters[0].Name = strings.Repeat("a", maxText+1) },
		"without a time":                           func(r *Record) { r.Counters[0].Stretches = nil },
		"grew by -1":                               func(r *Record) { r.Counters[0].Stretches[0].By = -1 },
		"grew by 9.1":                              func(r *Record) { r.Counters[0].Stretches[0].By = 9.1e15 },
		"of the machine: 9.1e+15":                  func(r *Record) { r.Counters[0].MaxShare = 9.1e15 },
		"from 1700000005000000 µs":                 func(r *Record) { r.Counters[0].Stretches[0].FromUS, r.Counters[0].Stretches[0].ToUS = at(5), at(4) },
		"from 1699999999000000 µs":                 func(r *Record) { r.Counters[0].Stretches[0].FromUS = at(-1) },
		"counter oom_kill of the machine: -1":      func(r *Record) { r.Counters[0].Increase = -1 },
		"counter oom_kill of the machine: it grew": func(r *Record) { r.Counters[0].Stretches[0].ToUS = r.ToUS + 1 },
		"at most 200 increases, got 201":           func(r *Record) { r.Counters[0].Stretches = make([]Stretch, maxStretches+1) },
		"100 counters":                             func(r *Record) { r.Counters = make([]Series, 100) },
	} {
		r := add(Follow("", time.Second), Reading{OOMKills: 3}, Reading{OOMKills: 4})
		require.NoError(t, r.Check())
		edit(r)
		require.ErrorContains(t, r.Check(), want)
	}
}

// On AWS, the driver has additional counters.
func TestCountersOfTheKernelAndOfAWSsDriver(t *testing.T) {
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
	var broken error
	s := source{proc: proc, devices: func() (map[string]uint64, bool, error) { return ena, true, broken }, suspended: func() (time.Duration, bool) { return 0, false }, clocks: clocks}
	want := Reading{
		Steal: 8.5, OOMKills: 3, ConntrackEntries: 41, "nf_conntrack_max": 100, OutSegs: 1000, Retrans: 12, Overflows: 5, Drops: 7,
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

	broken = errors.New("no such device")
	w.Sample(start.Add(10 * time.Second))
	require.Equal(t, r.Series("conntrack_allowance_exceeded"), w.Record().Series("conntrack_allowance_exceeded"), "a failed reading changes nothing")
}

func TestMachineWithoutCountersHasAReason(t *testing.T) {
	t.Parallel()
	s := source{proc: filepath.Join(t.TempDir(), "none"), devices: func() (map[string]uint64, bool, error) { return nil, false, nil }, suspended: func() (time.Duration, bool) { return 0, false }, clocks: clocks}
	w := newWatch(s, time.Second)
	w.Sample(start)
	require.Contains(t, w.Record().Unknown, "no counters, because they need Linux")
}

func TestSampleOfThisMachine(t *testing.T) {
	t.Parallel()
	w := New(time.Second)
	w.Sample(time.Now())
	r := w.Record()
	require.NotEmpty(t, r.Boot)
	require.NotEmpty(t, r.Namespace)
	require.NotZero(t, r.Cores)
	for _, name := range []string{Steal, Overflows, Drops, Retrans, OutSegs, OOMKills} {
		require.NotNil(t, r.Series(name), name)
	}
	require.Nil(t, r.Series("pps_allowance_exceeded"), "this machine is not on AWS")
	devices, err := filepath.Glob("/sys/class/net/*/device")
	require.NoError(t, err)
	require.Equal(t, len(devices) > 0, r.Cards, "interfaces of the kernel are not cards: %q", devices)
}

// The clocks of Linux show the length of a suspension.
func TestSuspensionIsCounted(t *testing.T) {
	t.Parallel()
	suspended := 3 * time.Hour
	s := source{proc: t.TempDir(), devices: func() (map[string]uint64, bool, error) { return nil, false, nil }, suspended: func() (time.Duration, bool) { return suspended, true }, clocks: clocks}
	w := newWatch(s, time.Second)
	w.Sample(start)
	for range 2 { // below and above a multiple of the resolution
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

// Steps of the wall clock count; slewing and suspension do not.
func TestStepsOfTheWallClock(t *testing.T) {
	t.Parallel()
	var wall, monotonic, suspended time.Duration
	s := source{
		proc: t.TempDir(), devices: func() (map[string]uint64, bool, error) { return nil, false, nil },
		suspended: func() (time.Duration, bool) { return suspended, true }, clocks: func() (time.Duration, time.Duration) { return wall, monotonic },
	}
	w := newWatch(s, time.Second)
	second := 0.
	pass := func(step time.Duration) *Series {
		second += 5
		monotonic += 5 * time.Second
		wall += 5*time.Second + step
		w.Sample(start.Add(time.Duration(second) * time.Second))
		return w.Record().Series(ClockStep)
	}
	pass(time.Hour) // before the run
	require.Zero(t, pass(2*time.Millisecond).Increase)
	suspended += time.Minute
	require.Zero(t, pass(time.Minute).Increase)
	require.InDelta(t, 10, pass(10*time.Second).Increase, 1e-9)
	require.InDelta(t, 13, pass(-3*time.Second).Increase, 1e-9)
	require.Len(t, w.Record().Series(ClockStep).Stretches, 1, "two successive intervals are one stretch")
}

func TestSuspendedFor(t *testing.T) {
	t.Parallel()
	first, ok := SuspendedFor()
	require.True(t, ok)
	second, _ := SuspendedFor()
	require.InDelta(t, first.Seconds(), second.Seconds(), 1, "the machine was not suspended")
}
