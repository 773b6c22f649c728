package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newStormRun returns a run of 100 streams. Every tenth stays open, and the others are dropped after 10 s and 20 s.
// They reconnect in sequence, 10 ms apart.
func newStormRun() *Run {
	r := runOf("storm", map[string]string{"EVERY": "10", "STORM_SECONDS": "10", "SLOW_MS": "1000", "DIAL_MS": "1000", "MIN_RATE": "0", "MAX_OPEN_LATE": "0"},
		shard.Stage{Name: "spread", Title: "spread", Start: 10, Seconds: 10, Requests: 90},
		shard.Stage{Name: "at-once", Title: "at once", Start: 20, Seconds: 10, Requests: 90}).addStreams(100, 40*time.Second)
	m := r.Rounds[0]
	for _, st := range m.Suite.Stages {
		at := ledger.Instant(st.Start * float64(time.Second))
		started := start.Add(at).UnixMicro()
		r.addCounter("storm_dropped", st.Name, 90)
		m.Metrics[len(m.Metrics)-1].FirstUS = started
		for _, name := range []string{"storm_dial_delay", "storm_connect"} {
			h := shard.NewHistogram()
			for range 90 {
				h.Record(20 * time.Millisecond)
			}
			m.Metrics = append(m.Metrics, shard.Metric{Name: name, Type: "trend", Tags: map[string]string{shard.TagStage: st.Name}, Trend: h, Count: 90, Max: 20})
		}
		reconnectAt := at
		for i := range m.Connections.Len() {
			if c := m.Connections.Edit(i); i%10 != 0 {
				reconnectAt += 10 * time.Millisecond
				c.Outages = append(c.Outages, ledger.Outage{From: at, To: reconnectAt, Planned: true})
				c.Streams, c.Survived = c.Streams+1, c.Survived+1
			}
		}
	}
	return r
}

func (r *Run) setDialDelay(storm string, by time.Duration) {
	for _, metric := range r.Rounds[0].Metrics {
		if metric.Name == "storm_dial_delay" && metric.Tags[shard.TagStage] == storm {
			metric.Trend.Record(by)
			metric.Trend.Record(by)
		}
	}
}

func TestStorm(t *testing.T) {
	t.Parallel()
	r := newStormRun()
	r.Rounds[0].Plan.BackendURL = "http://127.0.0.1:1"
	r.Rounds[0].Runners[0].Host = "host-1"
	r.Rounds[0].Runners[0].Machine = &machine.Record{Counters: []machine.Series{{Name: machine.Overflows, Increase: 3, Stretches: []machine.Stretch{{FromUS: 1, ToUS: 2, Increase: 3}}}, {Name: machine.SYNRetrans, Increase: 7}}}
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, []string{"spread: all 90 streams reconnected within 900 ms", "at once: all 90 streams reconnected within 900 ms"}, v.Reasons)
	require.Equal(t, []string{"at once", "90", "450 ms", "900 ms", "900 ms", "99", "90", "20.0", "20.0", "20.0", "0", "0", "20.0"}, table(v, "Storms").Rows[1])
	require.Equal(t, []string{"runner 1 (host-1)", "service and runners", "3", "–", "7"}, table(v, "Accept queues").Rows[0])
	require.Equal(t, "10 stayed open during the storms; 0 of their noops were late", fact(v, "other streams"))
	impacts := map[string]string{}
	for _, c := range v.Checks {
		impacts[c.Name] = c.Why
	}
	require.Equal(t, "clients lose data when others reconnect", impacts["other streams: noops missed"])
	require.Equal(t, "clients receive data too late when others reconnect", impacts["other streams: noops over 1000 ms late"])
}

func TestStormFindsFaults(t *testing.T) {
	t.Parallel()
	const second = time.Second
	judgeEdits(t, newStormRun, []runEdit{
		{"a stream was not dropped", func(r *Run) { r.Rounds[0].Metrics[0].Sum = 89 }, verdict.Invalid, "spread: only 89 of 90 streams were dropped"},
		{"no stream was dropped", func(r *Run) { r.Rounds[0].Metrics = nil }, verdict.Invalid, "at once: only 0 of 90 streams were dropped"},
		{"the script has no storm", func(r *Run) {
			*r = *runOf("storm", r.Rounds[0].Suite.Parameters).addStreams(100, 40*time.Second)
		}, verdict.Invalid, "[no stream was dropped, because the script has no storm]"},
		{"the generator dialed late", func(r *Run) { r.setDialDelay("at-once", 3*second) }, verdict.Invalid, "at once: the load generator was saturated: it dropped 99 % of the streams within 0 ms, and its dial delay was 3 s at p99 (limit: 1 s, DIAL_MS)"},
		{"the generator dialed late, and a noop was lost", func(r *Run) {
			r.setDialDelay("at-once", 3*second)
			r.silence(3, 38*second)
		}, verdict.Fail, "d-3 missed"},
		{"runners dropped their streams one after the other", func(r *Run) {
			for i := range r.Rounds[0].Connections.Len() {
				if o := r.Rounds[0].Connections.Edit(i).Outages; o != nil {
					o[1].From += ledger.Instant(i) * 30 * time.Millisecond
					o[1].To = o[1].From + second
				}
			}
		}, verdict.Invalid, "at once: the load generator was saturated: it dropped 99 % of the streams within 2."},
		{"a runner started 1.5 s after the other one", func(r *Run) {
			m := r.Rounds[0]
			m.Runners = append(m.Runners, m.Runners[0])
			for n := 50; n < 100; n++ {
				c := m.Connections.Edit(n)
				c.Runner = 1
				for i := range c.Outages {
					c.Outages[i].From += 1500 * time.Millisecond
					c.Outages[i].To += 1500 * time.Millisecond
				}
			}
		}, verdict.Invalid, "at once: the runners did not start at the same time: each dropped 99 % of its streams within 0 ms, and all together within 1.5 s (limit: 1 s, DIAL_MS); set RUNNERS=1, or raise DIAL_MS"},
		{"no client reconnected at its first attempt", func(r *Run) { r.Rounds[0].Metrics[1].Trend = shard.NewHistogram() }, verdict.Invalid, "spread: no stream reconnected at its first attempt"},
		{"a stream reconnected too late", func(r *Run) { r.Rounds[0].Connections.Edit(55).Outages[0].To = 20*second + 500*time.Millisecond }, verdict.Fail, "spread: 1 of 90 streams did not reconnect within 10 s"},
		{"a stream reconnected just in time", func(r *Run) { r.Rounds[0].Connections.Edit(55).Outages[0].To = 20 * second }, verdict.Pass, "spread: all 90 streams reconnected within 10 s"},
		{"a stream did not reconnect", func(r *Run) {
			c := r.Rounds[0].Connections.Edit(55)
			c.Longest = ledger.Outage{From: c.Outages[1].From, Refusals: []ledger.Refusal{{Reason: "status 503", Count: 4, First: 21 * second}}}
			c.Outages, c.State, c.Reason = c.Outages[:1], ledger.Waiting, "status 503"
		}, verdict.Fail, "at once: 1 of 90 streams did not reconnect within 10 s; refused: 4 × status 503, the first after 1 s and 89 connects"},
		{"a stream did not reconnect, because the generator had no port left", func(r *Run) {
			c := r.Rounds[0].Connections.Edit(55)
			c.Longest = ledger.Outage{From: c.Outages[1].From, To: 50 * second, Refusals: []ledger.Refusal{{Reason: ledger.ReasonNoPort, Count: 4, First: 21 * second}}}
			c.Outages, c.State, c.Reason, c.LastOutage, c.Refusals = c.Outages[:1], ledger.Waiting, ledger.ReasonNoPort, &c.Longest, c.Longest.Refusals
		}, verdict.Invalid, "4 connects failed, because the load generator had no local port left; widen net.ipv4.ip_local_port_range, or add machines for runners"},
		{"a reconnected stream was lost again", func(r *Run) {
			c := r.Rounds[0].Connections.Edit(55)
			c.Outages = append(c.Outages, ledger.Outage{From: 25 * second, To: 26 * second})
		}, verdict.Fail, "at once: 1 stream was lost, but not dropped by the client"},
		{"another stream was lost and reconnected at once", func(r *Run) {
			c := r.Rounds[0].Connections.Edit(10)
			c.Outages, c.Streams, c.Survived = []ledger.Outage{{From: 20*second + 100*time.Millisecond, To: 20*second + 300*time.Millisecond}}, 2, 1
		}, verdict.Fail, "at once: 1 stream was lost, but not dropped by the client"},
		{"a stream was lost before the first storm", func(r *Run) {
			c := r.Rounds[0].Connections.Edit(55)
			c.Outages = append([]ledger.Outage{{From: 7 * second, To: 8 * second}}, c.Outages...)
		}, verdict.Fail, "spread: 1 stream was lost, but not dropped by the client"},
		{"a stream was lost between the storms", func(r *Run) {
			c := r.Rounds[0].Connections.Edit(55)
			c.Outages = []ledger.Outage{c.Outages[0], {From: 15 * second, To: 16 * second}, c.Outages[1]}
		}, verdict.Fail, "spread: 1 stream was lost, but not dropped by the client"},
		{"a proxy closed streams after their lifetime", func(r *Run) {
			r.Rounds[0].Service = shard.Service{Name: "mine", LifetimeS: 6, CountBasis: shard.CountByInterval}
			c := r.Rounds[0].Connections.Edit(10)
			c.Outages = append(c.Outages, ledger.Outage{From: 27 * second, To: 28 * second})
		}, verdict.Pass, "at once: all 90 streams reconnected within 900 ms"},
		{"the service ended streams after their lifetime", func(r *Run) {
			for n := range 100 {
				c := r.Rounds[0].Connections.Edit(n)
				c.Outages = append(c.Outages, ledger.Outage{From: 27*second + ledger.Instant(n)*20*time.Millisecond, To: 31 * second, Planned: true})
			}
		}, verdict.Pass, "at once: all 90 streams reconnected within 900 ms"},
		{"lateness is unknown", func(r *Run) { r.Rounds[0].Service = shard.Service{Name: "mine", CountBasis: shard.CountByNumber} }, verdict.Invalid, "the limit is 0 (MAX_OPEN_LATE)"},
		{"another stream was late", func(r *Run) { r.delayNoops(10, 1, 21*second) }, verdict.Fail, "other streams: d-10 received noop 3 late"},
		{"another stream without numbers missed a noop", func(r *Run) {
			c := r.stream(10)
			c.Numbered, c.Unsent, c.Received = false, 1, c.Received-1
			c.Findings = []ledger.Finding{{Kind: ledger.KindUnsent, From: 21, Count: 1, At: 22 * second}}
		}, verdict.Fail, "other streams: d-10 missed 1"},
		{"another stream was disconnected", func(r *Run) { r.endEarly(10, 21*second, "reset") }, verdict.Fail, "d-10 was disconnected"},
		{"the service is too slow", func(r *Run) { r.set("MIN_RATE", "200") }, verdict.Fail, "connects per second: 99 (limit: at least 200)"},
		{"the service or the generator is too slow", func(r *Run) {
			r.set("MIN_RATE", "200")
			r.addSeconds(20, 5, shard.Second{StallMS: 900})
		}, verdict.Invalid, "the service accepted 99 connects per second, but 200 are required; the load generator may be the cause: a runner stalled for 900 ms"},
		{"refused clients waited", func(r *Run) {
			r.set("MIN_RATE", "200")
			for n := range 3 {
				r.Rounds[0].Connections.Edit(51 + n).Outages[1].Refusals = []ledger.Refusal{{Reason: "status 503", Count: 1, First: 20*second + 100*time.Millisecond}}
			}
		}, verdict.Invalid, "it is unknown whether the service accepts 200 connects per second: refusals delayed 3 of 90 clients, so the rate is a lower bound"},
		{"refused clients waited, and the rate suffices", func(r *Run) {
			r.set("MIN_RATE", "90")
			r.Rounds[0].Connections.Edit(51).Outages[1].Refusals = []ledger.Refusal{{Reason: "status 503", Count: 1, First: 20*second + 100*time.Millisecond}}
		}, verdict.Pass, "all 90 streams reconnected"},
	})
}

// If some clients are refused or wait, and all reconnect in the end, the run passes with warnings. Late noops of the
// reconnected streams are not a fault.
func TestStormPasses(t *testing.T) {
	t.Parallel()
	r := newStormRun()
	r.delayNoops(11, 2, 21*time.Second)
	c := r.stream(12)
	c.Numbered, c.Unsent, c.Received = false, 1, c.Received-1
	r.Rounds[0].Connections.Edit(55).Outages[1].Refusals = []ledger.Refusal{{Reason: "status 503", Count: 2, First: 20*time.Second + 100*time.Millisecond}}
	r.Rounds[0].Metrics[5].Trend.Record(3 * time.Second)
	r.Rounds[0].Metrics[5].Max = 3000
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, []string{"1 missed, most of them by dropped streams: the service does not number messages, so clients cannot resume", "at once: refused: 2 × status 503, the first after 100 ms and 9 connects", "at once: 1 of 90 connects took over 1 s, the longest 3 s"}, v.Warnings)
	require.Contains(t, fact(v, "at once"), "≥ 99 connects/s); at most 90 streams reconnected within one second; refusals delayed 1 of 90 clients, so the rate is a lower bound")
}

func TestStormPeakPerSecond(t *testing.T) {
	t.Parallel()
	s := stormStage{}
	for _, ms := range []int{0, 500, 999, 1000, 1400, 1600, 3000} {
		s.reconnects = append(s.reconnects, time.Duration(ms)*time.Millisecond)
	}
	require.Equal(t, 4, s.peak(), "the peak must be the reconnects from 999 to 1600 ms")
}
