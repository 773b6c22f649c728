package suite

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// When the load generator is saturated is said here and by verdict.CPUUse, and nowhere else. What was slow or failed is the
// generator's where its own waits explain it, at the moment at which it was slow or failed:
//
//   - To each answer it can have added shard.WakeUps times the longest that it had to wait meanwhile. What
//     is left is the service's own time. A load that is too slow with the services' own times is too slow.
//   - A timeout is the generator's where it can have added at least half of what the request took; and that
//     no connection was made because this host has no addresses, ports or descriptors left, always.
//     Every other failure is an answer of the service, or the end of a connection: no wait explains it.
//     Where its control group was in time, and the requests of the stage were small, it can have added no more than the
//     group saw: such a request does nothing but wait, as the streams of the group do.
//   - Requests that were never made are the generator's where it waited, before it left them out, for half
//     of the time for which a request waits for a connection; or where more of its connections' time went into
//     its own waits than into the service's times.
//   - Where service and runners share a machine that is full, and the service took less than half of it,
//     it may have waited for a core as the runners did. Slowness and timeouts are not the service's there
//     where the runners took more than half of the machine, or waited at any moment of that load for so
//     long that it explains them.
//   - Where each has cores of its own, these say it in place of the last rule: the one whose cores were full is the limit, and
//     of two the fuller one. Of cores that others filled nothing is known.
//   - If requests of a constant rate waited for a connection, and took no longer with one than in an idle service and kept the
//     limit of p95, the generator had too few connections. A saturated service is slower.
//   - Nor are they where AWS dropped packets of a runner's machine during that load.

// isTimeout reports whether the generator can have caused a failure of that code by its delays.
func isTimeout(code string) bool {
	return code == shard.CodeNet+"1050" || code == shard.CodeNet+"1211"
}

// isGeneratorFailure reports whether the generator caused a failure of that code: it had no address, port or
// descriptor.
func isGeneratorFailure(code string) bool { return code == shard.CodeNet+"1213" }

// attributeToGenerator looks, when all of a stage's requests have been added, for what the waits of the generator explain.
func (st *StageResult) attributeToGenerator(dropped shard.Metric) {
	for _, f := range st.metrics {
		switch {
		case isGeneratorFailure(f.Tags[shard.TagCode]):
			st.Attributed += f.Count
		case isTimeout(f.Tags[shard.TagCode]):
			half := time.Duration(f.Min / 2 * float64(time.Millisecond))
			if st.waited() && shard.WakeUps*st.Machine.Control < half {
				continue
			}
			st.Attributed += f.Own.CountBy([]time.Duration{half})[0]
		}
	}
	if st.Dropped > 0 && (st.waitedBefore(dropped) || st.generatorWaited()) {
		st.AttributedDropped = st.Dropped
	}
}

// mostSent is up to how many bytes a request is no work to send.
const mostSent = 64 << 10

// waited reports whether the stage's requests only waited for their answers, and the control group shows how promptly
// the generator can have noticed these.
func (st *StageResult) waited() bool {
	return st.Machine.Controlled && st.Sent > 0 && st.Sent <= mostSent*float64(st.Total())
}

// unhindered reports whether other programs filled the generator's cores and the control group was on time
// nevertheless: a delay of that length did not wait for them. Runners that compute for half of the time may have
// requests in a queue of their own.
func (st *StageResult) unhindered(took time.Duration) bool {
	m := st.Machine
	return st.waited() && m.Runners < 50*m.Usage.GeneratorCores && 2*shard.WakeUps*m.Control < took
}

// patience is the time for which a request waits for a connection before it is left out; where it does not wait, the time that a
// connection has for a request before there is none for the next one; of a closed model, the stage's.
func (st *StageResult) patience() time.Duration {
	seconds := st.Seconds
	switch {
	case st.Patience > 0:
		seconds = st.Patience
	case st.Rate > 0:
		seconds = float64(st.Connections) / st.Rate
	}
	return time.Duration(seconds * float64(time.Second))
}

// waitedBefore reports whether a runner waited long before it left requests out.
func (st *StageResult) waitedBefore(dropped shard.Metric) bool {
	from, to := time.UnixMicro(dropped.FirstUS).Add(-st.patience()), time.UnixMicro(dropped.LastUS)
	for _, s := range st.seconds {
		if overlap(time.UnixMicro(s.FromUS), time.UnixMicro(s.ToUS), from, to) > 0 && 2*waitOf(s) >= st.patience() {
			return true
		}
	}
	return false
}

// generatorWaited reports whether more of the connections' time was spent on the generator's own waits than on the
// service's times.
func (st *StageResult) generatorWaited() bool { return 2*totalTime(st.Undelayed) < totalTime(st.OK) }

// waitOf returns the longest wait in a second.
func waitOf(s shard.Second) time.Duration { return time.Duration(s.WaitMS) * time.Millisecond }

// totalTime returns the sum of a histogram, to its precision.
func totalTime(h *shard.Histogram) time.Duration {
	return time.Duration(float64(h.Mean()) * float64(h.Count()))
}

// How held tells a service that is full from connections that are too few for its answers.
const (
	someWaited = .05 // share of requests that waited for a connection; more failures than that are another fault
	noSlower   = 2   // times what the fastest answers took
)

// fastestOf returns the shortest good answer of each endpoint in any stage of the run, in milliseconds.
func fastestOf(stages []StageResult) map[string]float64 {
	out := map[string]float64{}
	for _, st := range stages {
		for _, m := range st.metrics {
			if m.Tags[shard.TagCode] != shard.CodeOK {
				continue
			}
			endpoint := m.Tags[shard.TagEndpoint]
			if least, known := out[endpoint]; !known || m.Min < least {
				out[endpoint] = m.Min
			}
		}
	}
	return out
}

// tooFewConnections returns a sentence if the generator had too few connections for the rate, otherwise "". Then requests waited for
// one, the service took at most twice its fastest time, and without the wait the answers keep the limit of p95.
func (st *StageResult) tooFewConnections(fastest map[string]float64, limit float64) string {
	good := st.OK.Count()
	if st.Rate == 0 || good == 0 || float64(st.Waiting) < someWaited*float64(st.Total()) || st.FailedShare() > someWaited {
		return ""
	}
	if limit > 0 && quantile(st.Connected, .95) > limit {
		return ""
	}
	var idle, all float64
	for _, m := range st.metrics {
		all += m.Sum
		if m.Tags[shard.TagCode] == shard.CodeOK {
			idle += fastest[m.Tags[shard.TagEndpoint]] * float64(m.Count) / float64(good)
		}
	}
	took := (all - st.WaitMS) / float64(st.Total())
	if took > noSlower*idle {
		return ""
	}
	return fmt.Sprintf("all %s were in use, and with a connection a request took %s on average, at most %d times the fastest; raise MAX_CONNECTIONS",
		format.Count(st.Connections, "connection"), ms(took), noSlower)
}

// grace returns how long after the end of a stage its answers still count: the longest time that the limits allow for an answer.
// Without a limit it is the time of the fastest answer, so that a queue that grows until the end of the stage shows.
func (st *StageResult) grace(l Limits) time.Duration {
	allowed := l.P95
	if allowed == 0 {
		allowed = st.least
	}
	return time.Duration(allowed * float64(time.Millisecond))
}

// level returns a stage as a load with the given number of offered requests.
func (st *StageResult) level(load, offered float64, l Limits) Level {
	v := Level{
		Load: load, FailedShare: st.FailedShare(), P95: quantile(st.OK, .95),
		OwnFailed: share(st.Failed.Count()-st.Attributed, st.Total()), OwnP95: quantile(st.Undelayed, .95),
	}
	if len(st.Codes) > 0 {
		v.Failure = codeText(st.codesByCount()[0])
	}
	took := st.OK.Quantile(.95)
	for _, f := range st.metrics {
		if isTimeout(f.Tags[shard.TagCode]) {
			took = max(took, f.Trend.Max())
		}
	}
	v.MachineLimit = st.Machine.crowded(took, st.unhindered(took))
	v.TooFewConnections = st.connectionLimit
	var hard int64
	for code, n := range st.Codes {
		if !isTimeout(code) && !isGeneratorFailure(code) {
			hard += n
		}
	}
	v.HardFailures = share(hard, st.Total())
	if offered > 0 {
		grace := st.grace(l)
		v.Answered = min(float64(st.answeredBy(grace))/offered, 1)
		v.OwnAnswered = min(float64(st.answeredBy(grace+shard.WakeUps*st.Machine.Wait)+st.Attributed+st.AttributedDropped)/offered, 1)
	}
	var excuses []string
	if st.Attributed > 0 {
		excuses = append(excuses, fmt.Sprintf("%s of them by its own waits, or for want of ports or descriptors", format.Thousands(st.Attributed)))
	}
	if st.AttributedDropped > 0 {
		excuses = append(excuses, fmt.Sprintf("it left %s requests out", format.Thousands(st.AttributedDropped)))
	}
	excuses = append(excuses, fmt.Sprintf("it waited up to %s to run", ms(1000*st.Machine.Wait.Seconds())))
	v.GeneratorDelay = strings.Join(excuses, ", ")
	return v
}

// When the generator counts as the limit of a throughput.
const (
	longestStall = 250 * time.Millisecond
	machineFull  = 0.9
	shortest     = 2.0 // seconds
)

// A Limit is the side that limited a stage, such as the load generator.
type Limit string

// Of a stage that was over too soon nothing is known: the figures are taken once a second.
const (
	NoLimit        Limit = "–"
	LimitUnknown   Limit = "not known"
	LimitGenerator Limit = "generator"
	LimitService   Limit = "service" // where it had cores of its own, and filled them
)

// Limit is which of the two was the limit, and why. That it was the service is known only where each has cores of its own.
func (m Machine) Limit() (limit Limit, reason string) {
	if m.Short {
		return LimitUnknown, fmt.Sprintf("less than %.0f seconds is too short to tell whether the load generator was saturated", shortest)
	}
	if reason := m.GeneratorLimit(); reason != "" {
		return LimitGenerator, reason
	}
	switch {
	case !m.SeparateCores || m.ServiceBusy < machineFull:
		return NoLimit, ""
	case m.Foreign:
		return LimitUnknown, m.byOthers()
	}
	return LimitService, m.headroom()
}

// byOthers reports whether other programs filled the cores of the service.
func (m Machine) byOthers() string {
	return fmt.Sprintf("others took most of the service's cores: these were %.0f %% busy, and it took %.0f %% of one", 100*m.ServiceBusy, m.Backend+m.Nginx)
}

// generatorFull reports whether the generator's cores were full, and fuller than the service's.
func (m Machine) generatorFull() bool {
	return m.SeparateCores && m.GeneratorBusy >= max(machineFull, m.ServiceBusy) && !m.serviceFilled()
}

// serviceFilled reports whether backend and nginx alone filled their cores, and the runners did not fill theirs. A
// service without CPU left is the limit even if other programs use the generator's cores. Waits of the runners are
// judged separately.
func (m Machine) serviceFilled() bool {
	service, runners := m.Usage.TargetCores, m.Usage.GeneratorCores
	return service > 0 && m.Backend+m.Nginx >= 100*machineFull*service && m.Runners < 100*machineFull*runners
}

// GeneratorLimit says in a sentence why a throughput may be the generator's own, "" if nothing speaks for
// it. It is no excuse for what was too slow or failed: see above. The waits of threads add up, on an idle
// machine too, so they count only where the runners wanted half of it.
func (m Machine) GeneratorLimit() string {
	u := verdict.CPUUse{CPU: m.Runners / 100, Waited: m.RunDelay, Wall: 1, Stall: m.Stall}
	switch {
	case m.Dropped > 0:
		return m.dropped()
	case m.Controlled && m.Control > longestStall:
		return fmt.Sprintf("the control group was late too, by up to %s", format.Duration(m.Control))
	case !m.Controlled && u.Stall > longestStall:
		return fmt.Sprintf("a runner stalled for %s", format.Duration(u.Stall))
	case m.generatorFull():
		return m.headroom()
	case m.SeparateCores: // its threads wait for each other
		return ""
	case u.WaitedLong() && u.CPU+u.Waited > float64(max(m.Cores, 1))/2:
		return fmt.Sprintf("the runners waited %.1f s for a core in each second, and computed for %.1f s", u.Waited, u.CPU)
	case m.full(m.Host) && m.Runners > m.Host/2:
		return fmt.Sprintf("the machine was full, and the runners took %.0f %% of a core of %.0f %%", m.Runners, m.Host)
	}
	return ""
}

// full reports whether this is all of the machine that service and runners share.
func (m Machine) full(host float64) bool {
	return m.Shared && m.Cores > 0 && host > 100*machineFull*float64(m.Cores)
}

func (m Machine) dropped() string {
	return fmt.Sprintf("AWS dropped %s of the runners' machines", format.Count(int(m.Dropped), "packet"))
}

// crowded says in a sentence that AWS dropped packets of the runners, or that others than the service filled the machine that
// it shares with them, so that what took that long may have waited for a core there; "" if not. The waits of the
// service are not known, but those of the runners are, on the same cores; unhindered speaks for runners with cores of their own.
func (m Machine) crowded(took time.Duration, unhindered bool) string {
	if m.Dropped > 0 {
		return m.dropped()
	}
	switch {
	case m.generatorFull() && !unhindered:
		return m.headroom()
	case m.SeparateCores && m.Foreign && m.ServiceBusy >= machineFull:
		return m.byOthers()
	case m.SeparateCores:
		return ""
	}
	service := m.Backend + m.Nginx
	byRunners := m.full(m.Host) && m.Runners > m.Host/2
	if service >= m.Host/2 || !byRunners && !(m.full(m.Peak) && m.Explains(took)) {
		return ""
	}
	text := fmt.Sprintf("the machine was full: of %.0f %% of a core the runners took %.0f %%", max(m.Host, m.Peak), m.Runners)
	if service > 0 {
		text += fmt.Sprintf(" and the service %.0f %%", service)
	}
	return text
}

// Explains reports whether the generator can have caused a delay: half of it or more is what it can have added.
func (m Machine) Explains(late time.Duration) bool {
	return m.Wait > 0 && 2*shard.WakeUps*m.Wait >= late
}
