package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newVanishRun returns a run of 100 streams. The client of every fifth stream vanishes after 10 s. The service notices
// half of these clients 20 s later, and the others 25 s later.
func newVanishRun() *Run {
	r := runOf("vanish", map[string]string{"EVERY": "5", "NOTICE_SECONDS": "60", "MAX_OPEN_LATE": "0", "GAUGE": ""},
		shard.Stage{Name: "vanished", Start: 10, Seconds: 60, Requests: 20}).addStreams(100, 40*time.Second)
	m := r.Rounds[0]
	for n := 0; n < 100; n += 5 {
		c := r.stream(n)
		c.State, c.Reason = ledger.Dropped, "cut"
		c.Findings = []ledger.Finding{{Kind: ledger.KindDropped, At: 10 * time.Second, Note: "cut"}}
	}
	m.Checks[0].Passes = 80
	r.addCounter("vanish_vanished", "vanished", 20)
	m.Metrics[0].FirstUS = start.Add(10 * time.Second).UnixMicro()
	for i := range int64(80) {
		streams := 100
		switch {
		case i < 2:
			streams = 0
		case i >= 34:
			streams = 80
		case i >= 29:
			streams = 90
		}
		r.Samples = append(r.Samples, resources.Sample{Unix: start.Unix() + i, BackendRSS: 1, Streams: streams})
	}
	return r
}

// setGauge sets GAUGE to clients. value returns the gauge for a number of open streams.
func (r *Run) setGauge(value func(streams float64) float64) *Run {
	r.set("GAUGE", "clients")
	for i, s := range r.Samples {
		v := value(float64(s.Streams))
		r.Samples[i].Gauge = &v
	}
	return r
}

func TestVanish(t *testing.T) {
	t.Parallel()
	v := judge(newVanishRun())
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, []string{"the service noticed after 25 s that 20 clients had vanished"}, v.Reasons)
	require.Equal(t, "half of them after 20 s, 99 % after 25 s, all after 25 s", fact(v, "noticed"))
	require.Equal(t, [][]string{{"before", "100"}, {"20", "90"}, {"25", "80"}, {"60", "80"}}, table(v, "The gauge after clients vanished").Rows)
	require.Equal(t, 80, v.Connections.Planned, "only the streams that stay open must be judged")
}

// The fact states no time of detection if the service noticed fewer than half of the clients, or if the gauge is
// unusable.
func TestVanishWithoutTimes(t *testing.T) {
	t.Parallel()
	r := newVanishRun()
	r.set("NOTICE_SECONDS", "15")
	require.Equal(t, "fewer than half of them within 15 s", fact(judge(r), "noticed"))
	r.set("NOTICE_SECONDS", "15.5")
	require.Equal(t, "fewer than half of them within 15.5 s", fact(judge(r), "noticed"))
	r.set("GAUGE", "clients")
	require.Equal(t, "not known", fact(judge(r), "noticed"))
}

// With many changes, the table contains some of them, and the last reading.
func TestManyChangesOfTheGauge(t *testing.T) {
	t.Parallel()
	g := streamGauge{before: 100}
	for i := range 40 {
		g.readings = append(g.readings, reading{time.Duration(i) * time.Second, float64(99 - i)})
	}
	rows := g.table().Rows
	require.Equal(t, []string{"39", "60"}, rows[len(rows)-1])
	require.LessOrEqual(t, len(rows), maxReadings+2)
}

// A killed runner leaves streams that were not observed. The merge reports these, and the suite does not repeat the
// report.
func TestUnobservedStreamsAreReportedOnce(t *testing.T) {
	t.Parallel()
	r := newVanishRun()
	m := r.Rounds[0]
	m.Connections = connectionsBetween(m, 20, 1000)
	m.Problems = m.CheckConnections()
	v := judge(r)
	require.Equal(t, verdict.Invalid, v.Verdict)
	count := 0
	for _, reason := range v.Reasons {
		if strings.Contains(reason, "20 of 100 planned clients were not observed") {
			count++
		}
	}
	require.Equal(t, 1, count, v.Reasons)
}

func TestVanishFindsFaults(t *testing.T) {
	t.Parallel()
	judgeEdits(t, newVanishRun, []runEdit{
		{"the service does not notice all vanished clients in time", func(r *Run) { r.set("NOTICE_SECONDS", "22") }, verdict.Fail, "22 s after 20 clients had vanished, the service still counted 10 of them as open (backend_streams_open)"},
		{"the service notices nothing", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].Streams = min(100, 50*i)
			}
			for i := 71; i < 80; i++ {
				r.Samples[i].Streams = 20
			}
		}, verdict.Fail, "still counted 20 of them as open (backend_streams_open): TCP itself gives up after about 15 minutes"},
		{"the gauge does not fall when a stream ends", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].Streams = min(100, 50*i)
			}
		}, verdict.Fail, "still counted 20 of them as open (backend_streams_open): when the other streams had ended, the gauge was still 100, so it does not fall when a stream ends"},
		{"clients did not vanish", func(r *Run) { r.Rounds[0].Metrics[0].Sum = 19 }, verdict.Invalid, "only 19 of 20 clients vanished"},
		{"no client vanished", func(r *Run) { r.Rounds[0].Metrics = nil }, verdict.Invalid, "only 0 of 20 clients vanished"},
		{"there is no gauge", func(r *Run) { r.set("GAUGE", "clients") }, verdict.Invalid, "the gauge clients has no samples"},
		{"the gauge is a counter of streams that were opened", func(r *Run) {
			opened := 0.
			r.setGauge(func(streams float64) float64 {
				opened = max(opened, streams)
				return opened
			})
			for i := range r.Samples {
				r.Samples[i].Counter = true
			}
		}, verdict.Invalid, "clients is a counter, which never falls; set GAUGE to a gauge of the streams that are open"},
		{"the gauge does not count streams", func(r *Run) { r.setGauge(func(float64) float64 { return 7 }) }, verdict.Invalid, "the gauge clients does not count the streams: it went from 7 to 7 while they opened"},
		{"the gauge counts every second stream", func(r *Run) { r.setGauge(func(streams float64) float64 { return streams / 2 }) }, verdict.Invalid, "the gauge clients does not count the streams: it went from 0 to 50 while they opened"},
		{"the gauge counts two per stream, and half of the clients are noticed in time", func(r *Run) {
			r.set("NOTICE_SECONDS", "22").setGauge(func(streams float64) float64 { return 2 * streams })
		}, verdict.Fail, "still counted 10 of them as open (clients)"},
		{"the gauge counts one stream of another user", func(r *Run) { r.Samples[8].Streams = 101 }, verdict.Invalid, "the gauge backend_streams_open changed by 1 right before the clients vanished"},
		{"the gauge counts 30 streams of another user", func(r *Run) { r.Samples[8].Streams = 130 }, verdict.Invalid, "the gauge backend_streams_open changed by 30 right before the clients vanished"},
		{"one reading covers a part of the service, and no loss is noticed", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].Streams = min(100, 50*i)
			}
			r.Samples[30].Streams = 40
		}, verdict.Fail, "still counted 20 of them as open"},
		{"the last reading covers a part of the service", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].Streams = min(100, 50*i)
			}
			for i := 69; i < 80; i++ {
				r.Samples[i].Streams = 40
			}
		}, verdict.Invalid, "the gauge backend_streams_open fell by 60, but only 20 clients had vanished"},
		{"the gauge passes the expected value on its way to 0", func(r *Run) {
			for i := 30; i < 80; i++ {
				r.Samples[i].Streams = max(0, 100-10*(i-29))
			}
		}, verdict.Invalid, "the gauge backend_streams_open fell by 100, but only 20 clients had vanished"},
		{"a reading covers a part of the service before the clients are noticed", func(r *Run) { r.Samples[20].Streams = 40 }, verdict.Pass, "noticed after 25 s that 20 clients had vanished"},
		{"a reading covers a part of the service after the clients are noticed", func(r *Run) { r.Samples[60].Streams = 40 }, verdict.Pass, "noticed after 25 s that 20 clients had vanished"},
		{"another client connects at the end", func(r *Run) { r.Samples[68].Streams, r.Samples[69].Streams = 81, 81 }, verdict.Fail, "still counted 1 of them as open"},
		{"the gauge is scraped when most streams are open, and then when some have vanished", func(r *Run) {
			for i := 2; i < 18; i++ {
				r.Samples[i].Streams = 96
			}
		}, verdict.Invalid, "the gauge backend_streams_open was 96 when the clients vanished, and rose afterward: other clients use the service, or the gauge is read too seldom"},
		{"the gauge is scraped before the streams are open, and then when some have vanished", func(r *Run) {
			for i := 2; i < 18; i++ {
				r.Samples[i].Streams = 0
			}
		}, verdict.Invalid, "the gauge backend_streams_open was 0 when the clients vanished, and rose afterward: other clients use the service, or the gauge is read too seldom"},
		{"the gauge is unknown at the end", func(r *Run) {
			r.setGauge(func(streams float64) float64 { return streams })
			for i := 41; i < 80; i++ {
				r.Samples[i].Gauge = nil
			}
		}, verdict.Invalid, "the gauge clients was last read 29 s before NOTICE_SECONDS had passed"},
		{"the gauge falls because other streams are disconnected", func(r *Run) { r.endEarly(7, 30*time.Second, "reset") }, verdict.Fail, "d-7 was disconnected"},
		{"no gauge, and another stream is disconnected", func(r *Run) {
			r.set("GAUGE", "clients")
			r.endEarly(7, 30*time.Second, "reset")
		}, verdict.Fail, "d-7 was disconnected"},
		{"another stream is disconnected, and reconnects at once", func(r *Run) {
			r.stream(7).Outages = []ledger.Outage{{From: 20 * time.Second, To: 21 * time.Second, Planned: true}, {From: 30 * time.Second, To: 30*time.Second + 200*time.Millisecond}}
		}, verdict.Fail, "d-7 lost its stream, which the suite does not disconnect"},
		{"eighty other streams are disconnected, and reconnect at once", func(r *Run) {
			for n := range 100 {
				r.stream(n).Outages = []ledger.Outage{{From: 30 * time.Second, To: 30*time.Second + 200*time.Millisecond}}
			}
		}, verdict.Fail, "… and 70 more; other streams lost: 80"},
		{"a proxy closes other streams when their tokens expire", func(r *Run) {
			r.Rounds[0].Plan.TokenTTL = 20
			r.Rounds[0].Connections.Edit(7).Outages = []ledger.Outage{{From: 30 * time.Second, To: 31 * time.Second}}
		}, verdict.Pass, "20 clients had vanished"},
		{"another stream ends with a text of the service that names a setting", func(r *Run) { r.endEarly(7, 20*time.Second, "closed (MAX_LATE)") }, verdict.Fail, "closed (MAX_LATE)"},
		{"the gauge of a proxy counts two connections per stream, and three others", func(r *Run) { r.setGauge(func(streams float64) float64 { return 2*streams + 3 }) }, verdict.Pass, "noticed after 25 s that 20 clients had vanished"},
		{"the first reading fails, and 30 other streams are open", func(r *Run) {
			r.setGauge(func(streams float64) float64 { return streams + 30 }).Samples[0].Gauge = nil
		}, verdict.Invalid, "the gauge clients has no samples"},
		{"the metric is missing until the first stream opens", func(r *Run) {
			r.setGauge(func(streams float64) float64 { return streams }).Samples[0].Gauge = nil
		}, verdict.Pass, "noticed after 25 s that 20 clients had vanished"},
		{"another stream is late", func(r *Run) { r.delayNoops(7, 1, 30*time.Second) }, verdict.Fail, "d-7"},
	})
}
