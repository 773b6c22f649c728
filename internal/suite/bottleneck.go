package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

type resource struct {
	Name    string
	Limit   float64 // used share from which the resource counts as full
	Advice  string  // what the user can do if the resource is full
	measure func(*StageResult) measurement
}

// limitedResources lists the measured resources. Causes precede their effects: a service that lacks CPU is slow, so
// more connections are open at the same time and wait in accept queues. docs/http.md has the same table.
var limitedResources = []resource{
	{"CPU used by other programs", machineFull, "stop other programs on the service's cores, or move them to other cores, and run again: " +
		"the service did not break, unless these programs are part of it", cpuOf(byPrograms)},
	{"CPU limit of the service", .5, "raise the limit (cpu.max, or --cpus of its container), or run more instances", cpuLimit},
	{"CPU of the service", machineFull, "give the service more or faster cores, or profile the process that uses most of its CPU time", cpuOf(byService)},
	{"CPU of the machine", machineFull, "find the program that uses most of the CPU: the service uses less than half, " +
		"or its processes are not known", cpuOf(byUnknown)},
	{"CPU of the backend (GOMAXPROCS)", machineFull, "raise GOMAXPROCS to the number of cores of the backend, or run more instances", backendCPU},
	{"memory of the service's machine", .95, "find the process whose memory grows and limit it, or give the machine more memory", memoryUse},
	{"bandwidth", machineFull, "send less (compression, smaller responses), or use a faster network or instance type", bandwidth},
	{"descriptors of the backend", .98, "raise its limit on open files (ulimit -n, LimitNOFILE), and close idle connections sooner", backendFiles},
	{"descriptors of nginx", .98, "raise worker_rlimit_nofile, and the limit of the unit that starts nginx", nginxFiles},
	{"connections of nginx", 1, "raise worker_connections: a proxied request needs two",
		nginxLog(func(log resources.NginxLog) int { return log.NoConnections }, "failure", "for lack of a connection")},
	{"accept queue of the service", 1, "raise net.core.somaxconn and the backlog of the listener, and accept sooner; " +
		"clients that keep their connections connect less often", acceptQueue},
	{"accept queue behind nginx", 1, "raise net.core.somaxconn before the backend starts, " +
		"and keep more idle connections to it (keepalive in upstream)",
		nginxLog(func(log resources.NginxLog) int { return log.QueueFull }, "connect", "of nginx found it full")},
	{"CPU of the load generator", machineFull, "run the generator on more cores or machines (--runner K/N): the service did not break", generatorCPU},
	{"connections of the load generator", 1, "let the generator open more connections (MAX_CONNECTIONS): the service did not break", generatorConnections},
	{"the generator's ports, descriptors and IPv6 addresses", 1, "widen net.ipv4.ip_local_port_range, raise ulimit -n, add machines for runners, or use IPv4: " +
		"the service did not break", generatorPorts},
}

const (
	noAdvice = "no measured resource was full: look for a lock, a pool, a request limit or a database behind the service, " +
		"in its own metrics and profiles"
	generatorAdvice = "give the load generator separate cores, or more machines (--runner K/N), and run again"
)

// A Bottleneck holds the use of all resources at two loads: BreakingPoint.Failed, and BreakingPoint.Sustained.
type Bottleneck struct {
	Good, Bad *StageResult // at Sustained and at Failed; Good is nil if no load was good
	Status    Status       // of Bad
	Uses      []ResourceUse
}

// A ResourceUse is the use of one resource around a breaking point.
type ResourceUse struct {
	resource
	good, bad measurement
	// FullFrom is the lowest load from which the resource was full at every load up to Bad.Rate. It is 0 if the resource
	// was not full at Bad, or its use is unknown.
	FullFrom float64
}

// findBottleneck compares the use of all resources at the failed and at the sustained load of a breaking point. It
// returns nil if all loads were good, or if a load was bad only when it was repeated.
func findBottleneck(stages []StageResult, b BreakingPoint) *Bottleneck {
	if b.Failed == 0 || b.Status == BadOnRetry {
		return nil
	}
	out := &Bottleneck{Status: b.Status}
	var sorted []*StageResult
	for i := range stages {
		if stages[i].Rate <= b.Failed {
			sorted = append(sorted, &stages[i])
		}
	}
	slices.SortStableFunc(sorted, func(x, y *StageResult) int { return cmp.Compare(x.Rate, y.Rate) })
	out.Bad = sorted[len(sorted)-1]
	for _, st := range sorted {
		if st.Rate == b.Sustained {
			out.Good = st
		}
	}
	for _, limited := range limitedResources {
		use := ResourceUse{resource: limited, bad: limited.measure(out.Bad)}
		if out.Good != nil {
			use.good = limited.measure(out.Good)
		}
		for _, st := range slices.Backward(sorted) {
			if u := limited.measure(st); !u.isKnown || u.share < limited.Limit {
				break
			}
			use.FullFrom = st.Rate
		}
		out.Uses = append(out.Uses, use)
	}
	return out
}

// Full returns the resources that were full, in the order of the loads at which they became full.
func (b *Bottleneck) Full() []ResourceUse {
	full := slices.DeleteFunc(slices.Clone(b.Uses), func(u ResourceUse) bool { return u.FullFrom == 0 })
	slices.SortStableFunc(full, func(x, y ResourceUse) int { return cmp.Compare(x.FullFrom, y.FullFrom) })
	return full
}

// String names the first resource that was full, and the resources that were full with it or later. If none was full,
// it lists the use of all resources.
func (b *Bottleneck) String() string {
	full := b.Full()
	if len(full) == 0 {
		text := "no measured resource was full at " + b.Bad.Title
		return text + b.list(": ", func(u ResourceUse) bool { return u.bad.isKnown }) +
			b.list("; not known: ", func(u ResourceUse) bool { return !u.bad.isKnown })
	}
	first := full[0]
	text := sentence("%s: full from %v/s on, %s at %s", first.Name, first.FullFrom, first.bad.text, b.Bad.Title)
	switch {
	case b.Good == nil:
	case first.good.isKnown:
		text += fmt.Sprintf(", %s at %s, which was good", first.good.text, b.Good.Title)
	default:
		text += fmt.Sprintf("; at %s, which was good, the use is %s", b.Good.Title, first.good.text)
	}
	return text +
		b.list("; full from the same load on: ", func(u ResourceUse) bool { return u.FullFrom == first.FullFrom && u.Name != first.Name }) +
		b.list("; full later: ", func(u ResourceUse) bool { return u.FullFrom > first.FullFrom })
}

// list returns intro and the selected resources with their use at the bad load, or "" if no resource is selected.
func (b *Bottleneck) list(intro string, selects func(ResourceUse) bool) string {
	var out []string
	for _, u := range b.Uses {
		if !selects(u) {
			continue
		}
		text := u.Name
		if u.bad.isKnown {
			text += ": " + u.bad.text
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return ""
	}
	return intro + strings.Join(out, "; ")
}

func (b *Bottleneck) advice() string {
	if full := b.Full(); len(full) > 0 {
		return full[0].Advice
	}
	if b.Status == ByGenerator {
		return generatorAdvice
	}
	return noAdvice
}

func (b *Bottleneck) facts() []verdict.Fact {
	if b == nil {
		return nil
	}
	return []verdict.Fact{{Name: "bottleneck", Value: b.String()}, {Name: "advice", Value: b.advice()}}
}

func (b *Bottleneck) tables() []verdict.Table {
	if b == nil {
		return nil
	}
	good := "good"
	if b.Good != nil {
		good = b.Good.Title
	}
	t := newTable("Resource usage", "at the last good load and at the first bad load", "resource|"+good+"|"+b.Bad.Title+"|full from")
	for _, u := range b.Uses {
		from := "–"
		if u.FullFrom > 0 {
			from = count(u.FullFrom) + "/s"
		}
		t.Add(u.Name, u.good.cell(), u.bad.cell(), from)
	}
	return []verdict.Table{t}
}

const (
	maxFasterRatio     = .9  // responses are faster if their median is below this share of the median at the lowest load
	minMedianResponses = 100 // minimum number of responses for a comparison of medians
)

// speedupFacts explains why responses at a higher load were faster than at the lowest load. It returns nil if they were
// not faster. It compares good loads with at least minMedianResponses responses. docs/http.md explains each cause.
func speedupFacts(stages []StageResult, levels []Level, limits Limits) []verdict.Fact {
	var good []*StageResult
	for i := range stages {
		if limits.Judge(levels[i]).Status == Good && stages[i].OK.Count() >= minMedianResponses {
			good = append(good, &stages[i])
		}
	}
	if len(good) < 2 {
		return nil
	}
	median := func(st *StageResult) float64 { return quantile(st.OK, .5) }
	low := slices.MinFunc(good, func(a, b *StageResult) int { return cmp.Compare(a.Rate, b.Rate) })
	fast := slices.MinFunc(good, func(a, b *StageResult) int { return int(1000 * (median(a) - median(b))) })
	if fast.Rate <= low.Rate || median(fast) >= maxFasterRatio*median(low) {
		return nil
	}
	text := fmt.Sprintf("it falls from %s at %s to %s at %s: ", ms(median(low)), low.Title, ms(median(fast)), fast.Title)
	return []verdict.Fact{{Name: "p50 under load", Value: text + fasterCauses(low.Machine, fast.Machine)}}
}

func fasterCauses(low, fast Machine) string {
	var causes []string
	add := func(differs bool, format string, a ...any) {
		if differs {
			causes = append(causes, fmt.Sprintf(format, a...))
		}
	}
	lowBusy, _, lowProblem := low.serviceCores()
	fastBusy, _, fastProblem := fast.serviceCores()
	hasCores := lowProblem == "" && fastProblem == ""
	add(hasCores && fastBusy-lowBusy > .2, "the idle time of cores fell from %.0f %% to %.0f %%, and an idle core has to wake up for a response",
		100*max(1-lowBusy, 0), 100*max(1-fastBusy, 0))
	a, b := low.Usage, fast.Usage
	if a.HasPerRequest && b.HasPerRequest {
		add(a.Accepts > .02 && a.Accepts > 2*b.Accepts, "the connections per request fell from %.2f to %.2f", a.Accepts, b.Accepts)
		add(a.ContextSwitches > 1.2*b.ContextSwitches, "the context switches per request fell from %.1f to %.1f, "+
			"because a thread that wakes up handles several requests", a.ContextSwitches, b.ContextSwitches)
		add(a.CPU > 1.2*b.CPU, "the CPU time per response fell from %.0f to %.0f µs, "+
			"because more responses share the fixed work and the caches", 1e6*a.CPU, 1e6*b.CPU)
	}
	switch {
	case len(causes) > 0:
		return strings.Join(causes, "; ")
	case hasCores && a.HasPerRequest && b.HasPerRequest:
		return "idle cores, connections, context switches and CPU time per response differ too little to explain it"
	}
	return "the cause is unknown: a stage has no samples, because it was too short or the service is on another machine"
}
