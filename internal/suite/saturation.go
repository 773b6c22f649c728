package suite

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// This file and verdict.CPUUse decide when the load generator was saturated. Slowness and failures are attributed to
// the generator if its own waits at that moment explain them:
//
//   - The generator may have added at most shard.WakeUps times its longest wait to each response. The rest is the time
//     of the service. If that time alone exceeds a limit, the service is too slow.
//   - A timeout is attributed to the generator if the generator's waits may have added at least half of the duration of
//     the request. If the control group was on time, and the requests of the stage were small, the waits added no more
//     than the group measured: a small request only waits for its response, as the streams of the group do.
//   - A failed connect is attributed to the generator if the host had no port, descriptor or IPv6 address.
//     Any other failure is a response of the service or the end of a connection, neither of which a wait explains.
//   - Requests that were not made are attributed to the generator in two cases. In the first, a runner had waited for
//     at least half of the time for which a request waits for a connection. In the second, the connections spent more
//     time on waits of the generator than on the service.
//   - If service and runners share a full machine, the service may have waited for a core as the runners did. If the
//     service used less than half of the machine, slowness and timeouts are not attributed to it in two cases: the
//     runners used more than half of the machine, or their waits are long enough to explain the delays.
//   - If service and runners have separate cores, the side whose cores were full was the limit; if both were full, the
//     fuller one. If other programs filled the cores, the limit is unknown.
//   - The generator had too few connections if requests at a constant rate waited for a connection, but were fast once
//     they had one: they took at most maxSlowdown times as long as the fastest, with p95 within its limit. A saturated
//     service is slower.
//   - Slowness and timeouts are not attributed to the service if AWS dropped packets of a runner's machine at that
//     load.

// isTimeout reports whether delays of the generator may have caused a failure with that code.
func isTimeout(code string) bool {
	return code == shard.CodeNet+"1050" || code == shard.CodeNet+"1211"
}

// isGeneratorFailure reports whether the generator caused a failure with that code, because it had no port, descriptor
// or IPv6 address.
func isGeneratorFailure(code string) bool {
	return shard.LackReasons[code] != ""
}

// lackedResources names the resources of shard.LackReasons together.
const lackedResources = "no port, descriptor or IPv6 address"

// attributeToGenerator counts the failures and dropped requests of a stage that are attributed to the generator. The
// caller must have added all requests of the stage.
func (st *StageResult) attributeToGenerator(dropped shard.Metric) {
	for _, f := range st.metrics {
		switch {
		case isGeneratorFailure(f.Tags[shard.TagCode]):
			st.Attributed += f.Count
		case isTimeout(f.Tags[shard.TagCode]):
			minWait := time.Duration(f.Min / 2 * float64(time.Millisecond))
			if st.hasMeasuredDelays() && shard.WakeUps*st.Machine.ControlDelay < minWait {
				continue
			}
			st.Attributed += f.Undelayed.CountBy([]time.Duration{minWait})[0]
		}
	}
	if st.Dropped > 0 && (st.waitedBefore(dropped) || st.generatorWaited()) {
		st.AttributedDropped = st.Dropped
	}
}

// maxSmallRequest is the size in bytes up to which the time to send a request is negligible.
const maxSmallRequest = 64 << 10

// hasMeasuredDelays reports whether the control groups measured the delay with which the generator read responses. It
// returns false for requests that are large or of unknown size, because the groups do not measure the time for sending.
func (st *StageResult) hasMeasuredDelays() bool {
	return st.Machine.HasControl && st.BytesSent > 0 && st.BytesSent <= maxSmallRequest*float64(st.Total())
}

// hadFreeCores reports whether the control group was on time, so that a lack of cores for the generator does not
// explain a delay of the given duration. It returns false if the runners use at least half of their cores, because
// requests may wait in queues of the runners.
func (st *StageResult) hadFreeCores(duration time.Duration) bool {
	m := st.Machine
	return st.hasMeasuredDelays() && m.Runners < 50*m.Usage.GeneratorCores && 2*shard.WakeUps*m.ControlDelay < duration
}

// maxWait returns the time for which a request waits for a connection before it is dropped. If requests do not wait, it
// is the time after which all connections are in use; in a closed model, the length of the stage.
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

// waitedBefore reports whether a runner waited for at least half of maxWait before it dropped requests.
func (st *StageResult) waitedBefore(dropped shard.Metric) bool {
	from, to := time.UnixMicro(dropped.FirstUS).Add(-st.maxWait()), time.UnixMicro(dropped.LastUS)
	for _, s := range st.seconds {
		if overlap(time.UnixMicro(s.FromUS), time.UnixMicro(s.ToUS), from, to) > 0 && 2*waitOf(s) >= st.maxWait() {
			return true
		}
	}
	return false
}

// generatorWaited reports whether connections spent more time on waits of the generator than on the service.
func (st *StageResult) generatorWaited() bool { return 2*totalTime(st.Undelayed) < totalTime(st.OK) }

func waitOf(s shard.Second) time.Duration { return time.Duration(s.WaitMS) * time.Millisecond }

// totalTime returns the sum of a histogram, with the precision of its mean.
func totalTime(h *shard.Histogram) time.Duration {
	return time.Duration(float64(h.Mean()) * float64(h.Count()))
}

// Limits with which tooFewConnections distinguishes a saturated service from too few connections.
const (
	minWaitedShare = .05 // minimum share of requests that waited for a connection, and maximum share of failed ones
	maxSlowdown    = 2   // maximum ratio: duration of a request ÷ duration of the fastest responses
)

// fastestOf returns the time of the fastest good response of each endpoint in any stage, in milliseconds.
func fastestOf(stages []StageResult) map[string]float64 {
	out := map[string]float64{}
	for _, st := range stages {
		for _, m := range st.metrics {
			if m.Tags[shard.TagCode] != shard.CodeOK {
				continue
			}
			endpoint := m.Tags[shard.TagEndpoint]
			if fastest, known := out[endpoint]; !known || m.Min < fastest {
				out[endpoint] = m.Min
			}
		}
	}
	return out
}

// tooFewConnections returns a sentence if requests waited for a connection, but were fast once they had one: they took
// at most maxSlowdown times as long as the fastest, with p95 within its limit. Otherwise it returns "".
func (st *StageResult) tooFewConnections(fastest map[string]float64, limit float64) string {
	good := st.OK.Count()
	if st.Rate == 0 || good == 0 || float64(st.Waiting) < minWaitedShare*float64(st.Total()) || st.FailedShare() > minWaitedShare {
		return ""
	}
	if limit > 0 && quantile(st.Connected, .95) > limit {
		return ""
	}
	var idle, sum float64
	for _, m := range st.metrics {
		sum += m.Sum
		if m.Tags[shard.TagCode] == shard.CodeOK {
			idle += fastest[m.Tags[shard.TagEndpoint]] * float64(m.Count) / float64(good)
		}
	}
	duration := (sum - st.WaitMS) / float64(st.Total())
	if duration > maxSlowdown*idle {
		return ""
	}
	return fmt.Sprintf("the limit of %s was reached, and with a connection a request took %s on average, at most %d times the fastest; raise MAX_CONNECTIONS",
		format.Count(st.Connections, "connection"), ms(duration), maxSlowdown)
}

// grace returns for how long responses still count after the end of a stage: the limit of p95. Without a limit, it
// returns the time of the fastest response, so that responses delayed by a growing queue do not count.
func (st *StageResult) grace(l Limits) time.Duration {
	allowed := l.P95
	if allowed == 0 {
		allowed = st.fastest
	}
	return time.Duration(allowed * float64(time.Millisecond))
}

// levels returns stages as levels.
func (l Limits) levels(stages []StageResult) []Level {
	out := make([]Level, 0, len(stages))
	for _, st := range stages {
		out = append(out, st.level(l))
	}
	return out
}

// level returns the level of a stage. Without a constant rate, the offered requests are the planned ones, or in a stage
// of fixed duration the requests that were made or dropped.
func (st *StageResult) level(l Limits) Level {
	load, offered := float64(st.Concurrency), float64(cmp.Or(int64(st.Stage.Requests), st.Total()+st.Dropped))
	if st.Rate > 0 {
		load, offered = st.Rate, st.Rate*st.Seconds
	}
	v := Level{
		Load: load, FailedShare: st.FailedShare(), P95: quantile(st.OK, .95),
		UndelayedFailedShare: share(st.Failed.Count()-st.Attributed, st.Total()), UndelayedP95: quantile(st.Undelayed, .95),
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
	v.HardFailureShare = share(hard, st.Total())
	if offered > 0 {
		grace := st.grace(l)
		v.AnsweredShare = min(float64(st.goodResponsesWithGrace(grace))/offered, 1)
		v.UndelayedAnsweredShare = min(float64(st.goodResponsesWithGrace(grace+shard.WakeUps*st.Machine.Wait)+st.Attributed+st.AttributedDropped)/offered, 1)
	}
	var causes []string
	if st.Attributed > 0 {
		causes = append(causes, fmt.Sprintf("%s attributed to the load generator, which waited, or had %s", format.Plural(st.Attributed, "failure is", "failures are"), lackedResources))
	}
	if st.AttributedDropped > 0 {
		causes = append(causes, fmt.Sprintf("the load generator did not make %s", format.Count(st.AttributedDropped, "request")))
	}
	causes = append(causes, fmt.Sprintf("the load generator waited up to %s for a CPU", ms(1000*st.Machine.Wait.Seconds())))
	v.GeneratorDelay = strings.Join(causes, ", ")
	return v
}

// Thresholds by which Machine.Limit decides which side limited a throughput.
const (
	maxStall    = 250 * time.Millisecond
	machineFull = 0.9
	minDuration = 2.0 // of a stage, in seconds
)

// A Limit is the side that limited a stage: the service or the load generator.
type Limit string

// The limits. The limit is unknown for a very short stage, and if other programs filled the cores of a side.
const (
	NoLimit        Limit = "–"
	LimitUnknown   Limit = "not known"
	LimitGenerator Limit = "generator"
	LimitService   Limit = "service" // only with separate cores, which the service filled
)

// Limit returns which side was the limit of the stage, and the reason.
func (m Machine) Limit() (limit Limit, reason string) {
	if m.TooShort {
		return LimitUnknown, fmt.Sprintf("a stage under %.0f seconds is too short to detect a saturated load generator", minDuration)
	}
	reason = m.GeneratorLimit()
	switch {
	case reason != "" && m.generatorDelay() == "" && m.isGeneratorCrowded():
		return LimitUnknown, reason
	case reason != "":
		return LimitGenerator, reason
	case !m.SeparateCores || m.ServiceBusy < machineFull:
		return NoLimit, ""
	case m.ForeignLoad:
		return LimitUnknown, m.foreignLoadText()
	}
	return LimitService, m.busyCores()
}

func (m Machine) foreignLoadText() string {
	return fmt.Sprintf("other programs used most of the service's cores: these were %.0f %% busy, and the service used %.0f %% of one", 100*m.ServiceBusy, m.Backend+m.Nginx)
}

// isGeneratorCrowded reports whether programs other than the runners used most of the busy time of the generator's
// cores.
func (m Machine) isGeneratorCrowded() bool {
	return m.SeparateCores && 100*m.GeneratorBusy*m.Usage.GeneratorCores > 2*m.Runners
}

// fullGeneratorText describes the full cores of the generator; see isGeneratorFull.
func (m Machine) fullGeneratorText() string {
	if m.isGeneratorCrowded() {
		return fmt.Sprintf("other programs used most of the generator's cores: these were %.0f %% busy, and the runners used %.0f %% of one", 100*m.GeneratorBusy, m.Runners)
	}
	return m.busyCores()
}

// isGeneratorFull reports whether the generator's cores were full, and at least as full as the service's. It returns
// false if isServiceFull.
func (m Machine) isGeneratorFull() bool {
	return m.SeparateCores && m.GeneratorBusy >= max(machineFull, m.ServiceBusy) && !m.isServiceFull()
}

// isServiceFull reports whether backend and nginx alone filled their cores, and the runners did not fill theirs. Then
// the service is the limit, even if other programs use the generator's cores.
func (m Machine) isServiceFull() bool {
	service, runners := m.Usage.TargetCores, m.Usage.GeneratorCores
	return service > 0 && m.Backend+m.Nginx >= 100*machineFull*service && m.Runners < 100*machineFull*runners
}

// GeneratorLimit returns why the generator may have limited a throughput. It returns "" if nothing shows that. The
// waits of threads add up even on an idle machine, so they count only if the runners needed half of its cores.
func (m Machine) GeneratorLimit() string {
	if delay := m.generatorDelay(); delay != "" {
		return delay
	}
	u := verdict.CPUUse{CPU: m.Runners / 100, Wait: m.RunDelay, Wall: 1}
	switch {
	case m.isGeneratorFull():
		return m.fullGeneratorText()
	case m.SeparateCores: // the threads of the runners wait only for each other
		return ""
	case u.HasLongWait() && u.CPU+u.Wait > float64(max(m.Cores, 1))/2:
		return fmt.Sprintf("in each second runner threads waited %.1f s for a core, and ran for %.1f s", u.Wait, u.CPU)
	case m.isFull(m.Host) && m.Runners > m.Host/2:
		return fmt.Sprintf("the machine was full, and the runners used %.0f %% of a core, of %.0f %% in total", m.Runners, m.Host)
	}
	return ""
}

// generatorDelay describes a measured delay of the generator or its network that limits a throughput. It returns "" if
// no delay does.
func (m Machine) generatorDelay() string {
	switch {
	case m.PacketsDropped > 0:
		return m.dropText()
	case m.HasControl && m.ControlDelay > maxStall:
		return fmt.Sprintf("the control group was late too, by up to %s", format.Duration(m.ControlDelay))
	case !m.HasControl && m.Stall > maxStall:
		return fmt.Sprintf("a runner stalled for %s", format.Duration(m.Stall))
	}
	return ""
}

func (m Machine) isFull(host float64) bool {
	return m.SharedHost && m.Cores > 0 && host > 100*machineFull*float64(m.Cores)
}

func (m Machine) dropText() string {
	return fmt.Sprintf("AWS dropped %s of the runners' machines", format.Count(int(m.PacketsDropped), "packet"))
}

// machineLimit returns a sentence if the machines may have delayed a request of this duration; otherwise "". They may
// have done so in two cases: AWS dropped packets of the runners, or programs other than the service filled its cores or
// the generator's cores. On shared cores the waits of the runners stand for the unknown waits of the service. freeCores
// is the result of hadFreeCores.
func (m Machine) machineLimit(duration time.Duration, freeCores bool) string {
	if m.PacketsDropped > 0 {
		return m.dropText()
	}
	switch {
	case m.isGeneratorFull() && !freeCores:
		return m.fullGeneratorText()
	case m.SeparateCores && m.ForeignLoad && m.ServiceBusy >= machineFull:
		return m.foreignLoadText()
	case m.SeparateCores:
		return ""
	}
	service := m.Backend + m.Nginx
	byRunners := m.isFull(m.Host) && m.Runners > m.Host/2
	if service >= m.Host/2 || !byRunners && !(m.isFull(m.HostPeak) && m.Explains(duration)) {
		return ""
	}
	text := fmt.Sprintf("the machine was full: the runners used %.0f %% of a core", m.Runners)
	if service > 0 {
		text += fmt.Sprintf(" and the service %.0f %%", service)
	}
	return text + fmt.Sprintf(", of %.0f %% in total", max(m.Host, m.HostPeak))
}

// Explains reports whether the waits of the generator may have added at least half of the delay.
func (m Machine) Explains(delay time.Duration) bool {
	return m.Wait > 0 && 2*shard.WakeUps*m.Wait >= delay
}
