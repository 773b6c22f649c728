package suite

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// This file and verdict.CPUUse alone decide when the load generator was saturated. Slowness and failures are attributed
// to the generator if its own waits, at the moment of the slowness or failure, explain them:
//
//   - The generator can have added shard.WakeUps times its longest wait to each answer. The rest is the service's own
//     time. A load that is too slow with the services' own times is too slow.
//   - A timeout is attributed to the generator if it can have added at least half of the duration of the request. A
//     failed connect because this host has no addresses, ports or descriptors left always is. Every other failure is an
//     answer of the service, or the end of a connection: no wait explains it. If the control group was on time, and the
//     requests of the stage were small, the generator can have added no more than the group measured: such a request
//     only waits, as the streams of the group do.
//   - Requests that were never made are attributed to the generator if, before it left them out, it waited for half of
//     the time for which a request waits for a connection; or if its connections spent more time on its own waits than
//     on the service's times.
//   - If service and runners share a machine that is full, and the service used less than half of it, the service may
//     have waited for a core as the runners did. Slowness and timeouts are then not attributed to the service if the
//     runners used more than half of the machine, or at any moment of that load waited long enough to explain them.
//   - If each has its own cores, these replace the last rule: the one whose cores were full is the limit; if both were
//     full, the fuller one. If other programs filled the cores, the limit is unknown.
//   - If requests of a constant rate waited for a connection, and with one were as fast as in an idle service and within
//     the limit of p95, the generator had too few connections. A saturated service is slower.
//   - Slowness and timeouts are not attributed to the service if AWS dropped packets of a runner's machine during that
//     load.

// isTimeout reports whether the generator can have caused a failure of that code by its delays.
func isTimeout(code string) bool {
	return code == shard.CodeNet+"1050" || code == shard.CodeNet+"1211"
}

// isGeneratorFailure reports whether the generator caused a failure of that code: it had no address, port or
// descriptor.
func isGeneratorFailure(code string) bool { return code == shard.CodeNet+"1213" }

// attributeToGenerator attributes failures of a stage to the waits of the generator. All requests of the stage must
// have been added before.
func (st *StageResult) attributeToGenerator(dropped shard.Metric) {
	for _, f := range st.metrics {
		switch {
		case isGeneratorFailure(f.Tags[shard.TagCode]):
			st.Attributed += f.Count
		case isTimeout(f.Tags[shard.TagCode]):
			half := time.Duration(f.Min / 2 * float64(time.Millisecond))
			if st.onlyWaited() && shard.WakeUps*st.Machine.Control < half {
				continue
			}
			st.Attributed += f.Own.CountBy([]time.Duration{half})[0]
		}
	}
	if st.Dropped > 0 && (st.waitedBefore(dropped) || st.generatorWaited()) {
		st.AttributedDropped = st.Dropped
	}
}

// maxSmallRequest is the size in bytes up to which sending a request costs no time.
const maxSmallRequest = 64 << 10

// onlyWaited reports whether the stage's requests only waited for their answers, and the control group shows how
// promptly the generator can have noticed these.
func (st *StageResult) onlyWaited() bool {
	return st.Machine.Controlled && st.Sent > 0 && st.Sent <= maxSmallRequest*float64(st.Total())
}

// hadFreeCores reports whether the generator's cores, although other programs filled them, cannot explain a delay of
// this length: the control group was on time. Runners that compute for half of the time may have requests in a queue
// of their own.
func (st *StageResult) hadFreeCores(duration time.Duration) bool {
	m := st.Machine
	return st.onlyWaited() && m.Runners < 50*m.Usage.GeneratorCores && 2*shard.WakeUps*m.Control < duration
}

// maxWait returns the time for which a request waits for a connection before it is left out. If it does not wait, it
// is the time that a connection has for a request before there is none for the next one; in a closed model, the
// length of the stage.
func (st *StageResult) maxWait() time.Duration {
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
	from, to := time.UnixMicro(dropped.FirstUS).Add(-st.maxWait()), time.UnixMicro(dropped.LastUS)
	for _, s := range st.seconds {
		if overlap(time.UnixMicro(s.FromUS), time.UnixMicro(s.ToUS), from, to) > 0 && 2*waitOf(s) >= st.maxWait() {
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

// Limits with which tooFewConnections distinguishes a saturated service from too few connections.
const (
	someWaited = .05 // share of requests that waited for a connection; more failures than that are another fault
	noSlower   = 2   // times the duration of the fastest answers
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
	duration := (all - st.WaitMS) / float64(st.Total())
	if duration > noSlower*idle {
		return ""
	}
	return fmt.Sprintf("all %s were in use, and with a connection a request took %s on average, at most %d times the fastest; raise MAX_CONNECTIONS",
		format.Count(st.Connections, "connection"), ms(duration), noSlower)
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
	duration := st.OK.Quantile(.95)
	for _, f := range st.metrics {
		if isTimeout(f.Tags[shard.TagCode]) {
			duration = max(duration, f.Trend.Max())
		}
	}
	v.MachineLimit = st.Machine.machineLimit(duration, st.hadFreeCores(duration))
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
		excuses = append(excuses, fmt.Sprintf("%s of them by its own waits, or because it had no ports or descriptors", format.Thousands(st.Attributed)))
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

// A very short stage has an unknown limit: the figures have one sample per second.
const (
	NoLimit        Limit = "–"
	LimitUnknown   Limit = "not known"
	LimitGenerator Limit = "generator"
	LimitService   Limit = "service" // it had its own cores, and filled them
)

// Limit returns which of the two was the limit, and why. The service can be named only if each has its own cores.
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
		return LimitUnknown, m.foreignLoadText()
	}
	return LimitService, m.headroom()
}

// foreignLoadText states that other programs filled the cores of the service.
func (m Machine) foreignLoadText() string {
	return fmt.Sprintf("other programs used most of the service's cores: these were %.0f %% busy, and the service used %.0f %% of one", 100*m.ServiceBusy, m.Backend+m.Nginx)
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

// GeneratorLimit returns why the generator may have limited a throughput, "" if nothing indicates it. It does not
// explain slow or failed requests: see above. The waits of threads add up, on an idle machine too, so they count only
// if the runners needed half of it.
func (m Machine) GeneratorLimit() string {
	u := verdict.CPUUse{CPU: m.Runners / 100, Waited: m.RunDelay, Wall: 1, Stall: m.Stall}
	switch {
	case m.Dropped > 0:
		return m.dropText()
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
	case m.isFull(m.Host) && m.Runners > m.Host/2:
		return fmt.Sprintf("the machine was full, and the runners used %.0f %% of a core of %.0f %%", m.Runners, m.Host)
	}
	return ""
}

// isFull reports whether this CPU time is all of the machine that service and runners share.
func (m Machine) isFull(host float64) bool {
	return m.Shared && m.Cores > 0 && host > 100*machineFull*float64(m.Cores)
}

func (m Machine) dropText() string {
	return fmt.Sprintf("AWS dropped %s of the runners' machines", format.Count(int(m.Dropped), "packet"))
}

// machineLimit returns a sentence if AWS dropped packets of the runners, or if programs other than the service filled
// the machine that it shares with them, so that a request of this duration may have waited for a core; "" if not. The
// waits of the service are unknown, but the waits of the runners on the same cores are known. freeCores is the result
// of hadFreeCores, for runners with their own cores.
func (m Machine) machineLimit(duration time.Duration, freeCores bool) string {
	if m.Dropped > 0 {
		return m.dropText()
	}
	switch {
	case m.generatorFull() && !freeCores:
		return m.headroom()
	case m.SeparateCores && m.Foreign && m.ServiceBusy >= machineFull:
		return m.foreignLoadText()
	case m.SeparateCores:
		return ""
	}
	service := m.Backend + m.Nginx
	byRunners := m.isFull(m.Host) && m.Runners > m.Host/2
	if service >= m.Host/2 || !byRunners && !(m.isFull(m.Peak) && m.Explains(duration)) {
		return ""
	}
	text := fmt.Sprintf("the machine was full: of %.0f %% of a core the runners used %.0f %%", max(m.Host, m.Peak), m.Runners)
	if service > 0 {
		text += fmt.Sprintf(" and the service %.0f %%", service)
	}
	return text
}

// Explains reports whether the generator can have caused a delay: it can have added at least half of it.
func (m Machine) Explains(late time.Duration) bool {
	return m.Wait > 0 && 2*shard.WakeUps*m.Wait >= late
}
