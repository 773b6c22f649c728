package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A resource is something that a service, or the load generator, can run out of.
type resource struct {
	Name    string
	Limit   float64 // share of the capacity from which on it counts as full
	Advice  string
	measure func(*StageResult) measurement
}

// limitedResources lists what is measured. Causes come before their effects: a service without CPU is slow, so more connections
// are open at a time, and they wait in accept queues. docs/http.md has the same table.
var limitedResources = []resource{
	{"CPU that other programs take", machineFull, "stop other programs on the service's cores, or move them to other cores, and run again: " +
		"the service did not break, unless these programs are part of it", cpuOf(byPrograms)},
	{"CPU limit of its control group", .5, "raise the limit (cpu.max, or --cpus of its container), or run more instances", cpuLimit},
	{"CPU of the service", machineFull, "give it more or faster cores, or profile the process that takes most of them", cpuOf(byService)},
	{"CPU of the machine", machineFull, "find the program that uses most of the CPU: the service uses less than half, " +
		"or its processes are not known", cpuOf(byUnknown)},
	{"CPU of the backend (GOMAXPROCS)", machineFull, "raise GOMAXPROCS to the cores that it may run on, or run more instances", backendCPU},
	{"memory of the service's machine", .95, "find out what grows (soak with GAUGE), bound it, or give the machine more", memoryUse},
	{"bandwidth", machineFull, "send less (compression, smaller answers), or take a faster network or instance type", bandwidth},
	{"descriptors of the backend", .98, "raise its limit of open files (ulimit -n, LimitNOFILE), and close idle connections sooner", backendFiles},
	{"descriptors of nginx", .98, "raise worker_rlimit_nofile, and the limit of the unit that starts nginx", nginxFiles},
	{"connections of nginx", 1, "raise worker_connections: a proxied request takes two",
		nginxLog(func(log resources.NginxLog) int { return log.NoConnections }, "times there was none")},
	{"accept queue of the service", 1, "raise net.core.somaxconn and the backlog of the listener, and accept sooner; " +
		"clients that keep connections need fewer", acceptQueue},
	{"accept queue behind nginx", 1, "raise net.core.somaxconn before the backend starts, " +
		"and keep more idle connections to it (keepalive in upstream)",
		nginxLog(func(log resources.NginxLog) int { return log.QueueFull }, "connects of nginx found it full")},
	{"CPU of the load generator", machineFull, "run the generator on more cores or machines (--runner K/N): the service did not break", generatorCPU},
	{"connections of the load generator", 1, "let the generator open more connections (MAX_CONNECTIONS): the service did not break", generatorConnections},
	{"the generator's ports and descriptors", 1, "widen net.ipv4.ip_local_port_range, raise ulimit -n, or add runners' machines: " +
		"the service did not break", generatorPorts},
}

const (
	// noAdvice is for a service that broke while nothing was full.
	noAdvice = "it waits for something of its own: look for a lock, a pool, a limit of requests or a database behind it, " +
		"in its own metrics and profiles"
	generatorAdvice = "give the load generator cores of its own, or more machines (--runner K/N), and run again"
)

// A Bottleneck is the use of all resources at the load that was bad, and at the last one that was good.
type Bottleneck struct {
	Good, Bad *StageResult // Good is nil if the lowest load was bad
	Status    Status       // of Bad
	Uses      []ResourceUse
}

// A ResourceUse is the use of one resource around a breaking point.
type ResourceUse struct {
	resource
	good, bad measurement
	From      float64 // the lowest load from which on it was full; 0: it was not full
}

// FindBottleneck compares the stages around the breaking point; nil if there is none.
func FindBottleneck(stages []StageResult, b Breaking) *Bottleneck {
	if b.Failed == 0 || b.Status == NoMore {
		return nil
	}
	out := &Bottleneck{Status: b.Status}
	var upTo []*StageResult
	for i := range stages {
		if stages[i].Rate <= b.Failed {
			upTo = append(upTo, &stages[i])
		}
	}
	slices.SortStableFunc(upTo, func(x, y *StageResult) int { return int(x.Rate - y.Rate) })
	out.Bad = upTo[len(upTo)-1]
	for _, st := range upTo {
		if st.Rate == b.Sustained {
			out.Good = st
		}
	}
	for _, of := range limitedResources {
		use := ResourceUse{resource: of, bad: of.measure(out.Bad)}
		if out.Good != nil {
			use.good = of.measure(out.Good)
		}
		for _, st := range slices.Backward(upTo) {
			if u := of.measure(st); !u.known || u.share < of.Limit {
				break
			}
			use.From = st.Rate
		}
		out.Uses = append(out.Uses, use)
	}
	return out
}

// Full returns the resources that were full, the one that was full at the lowest load first.
func (b *Bottleneck) Full() []ResourceUse {
	full := slices.DeleteFunc(slices.Clone(b.Uses), func(u ResourceUse) bool { return u.From == 0 })
	slices.SortStableFunc(full, func(x, y ResourceUse) int { return int(x.From - y.From) })
	return full
}

func (b *Bottleneck) String() string {
	full := b.Full()
	if len(full) == 0 {
		text := "nothing that was measured was full at " + b.Bad.Title
		return text + b.list(": ", func(u ResourceUse) bool { return u.bad.known }) +
			b.list("; not known: ", func(u ResourceUse) bool { return !u.bad.known })
	}
	first := full[0]
	text := sentence("%s: full from %v/s on, %s at %s", first.Name, first.From, first.bad.text, b.Bad.Title)
	if b.Good != nil {
		text += fmt.Sprintf(", %s at %s, which was good", first.good.text, b.Good.Title)
	}
	return text +
		b.list("; full from the same load on: ", func(u ResourceUse) bool { return u.From == first.From && u.Name != first.Name }) +
		b.list("; full later: ", func(u ResourceUse) bool { return u.From > first.From })
}

// list names some of the resources with their use at the bad load, after an introduction; "" for none.
func (b *Bottleneck) list(intro string, some func(ResourceUse) bool) string {
	var out []string
	for _, u := range b.Uses {
		switch {
		case !some(u):
		case u.bad.known:
			out = append(out, u.Name+" "+u.bad.text)
		default:
			out = append(out, u.Name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return intro + strings.Join(out, ", ")
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
	name := "what broke"
	if b.Status == ByGenerator {
		name = "what was full"
	}
	return []verdict.Fact{{Name: name, Value: b.String()}, {Name: "advice", Value: b.advice()}}
}

func (b *Bottleneck) tables() []verdict.Table {
	if b == nil {
		return nil
	}
	good := "good"
	if b.Good != nil {
		good = b.Good.Title
	}
	t := newTable("What was full", "by the samples of the last load that was good and of the first that was not", "resource|"+good+"|"+b.Bad.Title+"|full from")
	for _, u := range b.Uses {
		from := "–"
		if u.From > 0 {
			from = count(u.From) + "/s"
		}
		t.Add(u.Name, u.good.cell(), u.bad.cell(), from)
	}
	return []verdict.Table{t}
}

// A measurement is the use of a resource in a stage.
type measurement struct {
	known bool
	share float64 // of its capacity; of a resource that shows only by its failures: 0, or 1 if it was full
	text  string  // the use, or why it is not known
}

func (u measurement) cell() string {
	switch {
	case u.known:
		return u.text
	case u.text == "":
		return "–"
	}
	return "not known"
}

const (
	tooShort     = "the stage was over too soon"
	noSamples    = "the service is not on this machine, or the stage was over too soon"
	noPrometheus = "no Prometheus watches the service's machine (PROMETHEUS_URL)"
	noNginx      = "no nginx on this machine is known to stand before the service"
)

func unknown(why string) measurement { return measurement{text: "not known: " + why} }

func used(share float64, text string, args ...any) measurement {
	return measurement{true, share, sentence(text, args...)}
}

// failuresPerFull is the number of requests of a stage for which one failure counts as a full resource.
const failuresPerFull = 1000

// byFailures measures a resource that shows only by its failures.
func byFailures(st *StageResult, failures float64, text string) measurement {
	switch {
	case failures == 0:
		return used(0, "none refused")
	case failures*failuresPerFull < float64(st.Total()):
		return used(0, "%v %s", failures, text)
	}
	return used(1, "%v %s", failures, text)
}

// The possible main users of the service's cores.
const (
	byUnknown   = ""
	byService   = "the service"
	byGenerator = "the load generator"
	byPrograms  = "other programs"
	othersName  = "others and the kernel" // the kernel's share is its work for packets
)

// mostCPU returns the user of at least half of the CPU time spent on the service's cores. CPU time of unknown processes is
// never attributed to the service.
func (m Machine) mostCPU() string {
	busy, others, _ := m.serviceCores()
	half := busy * m.Usage.TargetCores / 2
	switch {
	case m.Shared && !m.Apart && m.Runners/100 > half:
		return byGenerator
	case (m.Backend+m.Nginx)/100 >= half:
		return byService
	case m.Usage.Inside && others >= half:
		return byPrograms
	}
	return byUnknown
}

// serviceCores returns the busy share of the service's cores, and how many cores others than service and generator used of
// them; or why that is not known.
func (m Machine) serviceCores() (busy, others float64, why string) {
	total, cores := m.Host/100, m.Usage.TargetCores
	service := (m.Backend + m.Nginx) / 100
	switch {
	case m.Short:
		return 0, 0, tooShort
	case m.Apart:
		return m.ServiceBusy, m.ServiceBusy*cores - service, ""
	case !m.Usage.Host || cores == 0:
		return 0, 0, noPrometheus
	case m.Shared:
		service += m.Runners / 100
	}
	return total / cores, total - service, ""
}

// cpuOf measures the service's cores. They count as full for their main user only.
func cpuOf(user string) func(*StageResult) measurement {
	return func(st *StageResult) measurement {
		m := st.Machine
		busy, others, why := m.serviceCores()
		service := m.Backend + m.Nginx
		switch {
		case why != "":
			return unknown(why)
		case user == byPrograms && !m.Usage.Inside: // a backend that is not ours counts as others
			return unknown(noSamples)
		case user == byService && !m.Usage.Inside && service == 0:
			return unknown("no process of the service was found")
		}
		most, share := m.mostCPU(), busy
		if most != user {
			share = 0
		}
		switch {
		case user == byPrograms:
			return used(share, "%s busy, %.0f %% of a core by %s", percent(busy), raw(max(100*others, 0)), othersName)
		case most == user:
			return used(share, "%s busy%s", percent(busy), m.coreUsers())
		case user == byService:
			return used(share, "%.0f %% of a core, of cores that were %s busy", raw(service), percent(busy))
		}
		return used(share, "%s busy, most of it by %s", percent(busy), most)
	}
}

// coreUsers names the known users of the service's cores, in brackets.
func (m Machine) coreUsers() string {
	_, others, _ := m.serviceCores()
	var parts []string
	add := func(name string, percent float64, known bool) {
		if known {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", name, percent))
		}
	}
	add("backend", m.Backend, m.Backend > 0)
	add("nginx", m.Nginx, m.Nginx > 0)
	add(othersName, 100*others, m.Usage.Inside && others > .1)
	text := ""
	if len(parts) > 0 {
		text = " (" + strings.Join(parts, ", ") + " of a core)"
	}
	if m.Shared && !m.Apart {
		text += ", shared with the load generator"
	}
	return text
}

func cpuLimit(st *StageResult) measurement {
	t := st.Machine.Usage
	switch {
	case !t.Inside:
		return unknown(noSamples)
	case t.Periods == 0:
		return used(0, "it has none")
	}
	share := t.Throttled / t.Periods
	return used(share, "reached in %s of the time", percent(share))
}

func backendCPU(st *StageResult) measurement {
	m := st.Machine
	if m.Short || m.Usage.Procs == 0 || m.Backend == 0 {
		return unknown("the backend does not expose CPU metrics")
	}
	share := m.Backend / 100 / m.Usage.Procs
	return used(share, "%s busy, of %s", percent(share), format.Count(int(m.Usage.Procs), "core"))
}

func memoryUse(st *StageResult) measurement {
	t := st.Machine.Usage
	switch {
	case t.Killed > 0:
		return used(1, "the kernel killed %s for want of it", format.Plural(int(t.Killed), "process", "processes"))
	case !t.Host || t.Memory == 0 || t.Available == 0:
		return unknown(noPrometheus)
	}
	share := 1 - t.Available/t.Memory
	return used(share, "%s of %s", percent(share), format.Bytes(uint64(t.Memory)))
}

func bandwidth(st *StageResult) measurement {
	t := st.Machine.Usage
	packets := st.Machine.Dropped + t.Allowance
	switch {
	case t.Loopback:
		return used(0, "over loopback, which has no limit")
	case packets > 0:
		return used(1, "AWS held back or dropped %s", format.Count(int(packets), "packet"))
	case t.Link >= 0:
		return used(t.Link, "%s of this machine's network cards", percent(t.Link))
	case t.Allowed:
		return used(0, "AWS held nothing back")
	}
	return unknown("neither network cards nor AWS report the capacity")
}

func backendFiles(st *StageResult) measurement {
	t := st.Machine.Usage
	if t.MaxFiles == 0 || t.Files == 0 {
		return unknown("the backend does not expose its descriptors")
	}
	return used(t.Files/t.MaxFiles, "%v of %v open", t.Files, t.MaxFiles)
}

func nginxFiles(st *StageResult) measurement {
	t := st.Machine.Usage
	if u := nginxLog(func(log resources.NginxLog) int { return log.NoFiles }, "times there was none")(st); !u.known || u.share > 0 {
		return u
	}
	return used(t.NginxFull, "%s of the fullest process open", percent(t.NginxFull))
}

func acceptQueue(st *StageResult) measurement {
	if !st.Machine.Usage.Queue {
		return unknown(noPrometheus)
	}
	return byFailures(st, st.Machine.Usage.Overflows, "connects found it full (ListenOverflows)")
}

// nginxLog measures a resource by the messages of nginx that report it full.
func nginxLog(messages func(resources.NginxLog) int, text string) func(*StageResult) measurement {
	return func(st *StageResult) measurement {
		if !st.Machine.Usage.Proxy {
			return unknown(noNginx)
		}
		return byFailures(st, float64(messages(st.Machine.Usage.Log)), text)
	}
}

func generatorCPU(st *StageResult) measurement {
	m := st.Machine
	switch {
	case m.Short:
		return unknown(tooShort)
	case m.Apart:
		return used(m.GeneratorBusy, "%s busy (runners %.0f %% of a core)", percent(m.GeneratorBusy), raw(m.Runners))
	case m.Usage.GeneratorCores == 0:
		return unknown("the runners' machines do not report their cores")
	}
	share := m.Runners / 100 / m.Usage.GeneratorCores
	return used(share, "%s busy", percent(share))
}

func generatorConnections(st *StageResult) measurement {
	switch {
	case st.held != "":
		return used(1, "all %v in use", st.Connections)
	case st.Waiting > 0:
		return used(0, "%s waited for one of %v, because answers took longer", format.Count(int(st.Waiting), "request"), st.Connections)
	}
	return used(0, "enough")
}

func generatorPorts(st *StageResult) measurement {
	var n int64
	for code, times := range st.Codes {
		if isOurs(code) {
			n += times
		}
	}
	return byFailures(st, float64(n), "connects found none")
}

const (
	fasterBy     = .9 // of the median at the lowest load: above it, a median is not called faster
	medianOfMany = 100
)

// fasterUnderLoad explains why answers at a higher load came sooner than those at the lowest one, if they did.
// docs/http.md explains each cause.
func fasterUnderLoad(stages []StageResult, levels []Level, limits Limits) []verdict.Fact {
	var good []*StageResult
	for i := range stages {
		if status, _ := limits.Judge(levels[i]); status == Good && stages[i].OK.Count() >= medianOfMany {
			good = append(good, &stages[i])
		}
	}
	if len(good) < 2 {
		return nil
	}
	median := func(st *StageResult) float64 { return quantile(st.OK, .5) }
	low := slices.MinFunc(good, func(a, b *StageResult) int { return int(a.Rate - b.Rate) })
	fast := slices.MinFunc(good, func(a, b *StageResult) int { return int(1000 * (median(a) - median(b))) })
	if fast.Rate <= low.Rate || median(fast) >= fasterBy*median(low) {
		return nil
	}
	text := fmt.Sprintf("it falls from %s at %s to %s at %s: ", ms(median(low)), low.Title, ms(median(fast)), fast.Title)
	return []verdict.Fact{{Name: "p50 under load", Value: text + fasterBecause(low.Machine, fast.Machine)}}
}

// fasterBecause names the differences between a low load and a higher one with faster answers.
func fasterBecause(low, fast Machine) string {
	var causes []string
	add := func(differs bool, format string, a ...any) {
		if differs {
			causes = append(causes, fmt.Sprintf(format, a...))
		}
	}
	lowBusy, _, notLow := low.serviceCores()
	fastBusy, _, notFast := fast.serviceCores()
	known := notLow == "" && notFast == ""
	add(known && fastBusy-lowBusy > .2, "cores were idle for %.0f %% of the time and then %.0f %%, and an idle core has to wake up for an answer",
		100*max(1-lowBusy, 0), 100*max(1-fastBusy, 0))
	a, b := low.Usage, fast.Usage
	if a.PerRequest && b.PerRequest {
		add(a.Accepts > .02 && a.Accepts > 2*b.Accepts, "%.2f connections were made for each request and then %.2f", a.Accepts, b.Accepts)
		add(a.Runs > 1.2*b.Runs, "threads of backend and nginx were scheduled %.1f times for each request and then %.1f, "+
			"as a thread that wakes up handles several requests", a.Runs, b.Runs)
		add(a.Each > 1.2*b.Each, "backend and nginx used %.0f µs of CPU for each answer and then %.0f, "+
			"as more answers share the fixed work and the caches", 1e6*a.Each, 1e6*b.Each)
	}
	switch {
	case len(causes) > 0:
		return strings.Join(causes, "; ")
	case known && a.PerRequest && b.PerRequest:
		return "neither idle cores nor new connections, wake-ups or CPU of an answer differ enough to explain it"
	}
	return "the cause is not known: no samples cover it, as for a service elsewhere or a stage of few seconds"
}
