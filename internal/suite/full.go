package suite

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
)

// A Use is how much of a resource a stage took.
type Use struct {
	Known bool
	Share float64 // of all that there is of it; of what shows only by its failures 0, or 1 from oneOf requests on
	Text  string  // for people; where it is not known, why
	Brief string  // for a table
}

// A resource is something that a service, or the load generator, can run out of.
type resource struct {
	Name   string
	Full   float64 // the share from which on it counts as full
	Advice string
	use    func(*StageResult) Use
}

// oneOf is how many requests of a stage one event is too few for to have broken it.
const oneOf = 1000

// broken are all resources that are looked at. What makes others run out comes before these: a service without CPU is slow,
// so more connections are open at a time, and they wait in accept queues. docs/http-suites.md has the same table.
var broken = []resource{
	{"CPU that other programs take", machineFull, "stop other programs on the service's cores, or move them to other cores, and run again: the service did not break, unless these programs are part of it", othersCPU},
	{"CPU limit of its control group", .5, "raise the limit (cpu.max, or --cpus of its container), or run more instances", throttled},
	{"CPU of the service", machineFull, "give it more or faster cores, or profile the process that takes most of them", serviceCPU},
	{"CPU of the machine", machineFull, "find the program that uses most of the CPU: the service uses less than half, or its processes are not known", machineCPU},
	{"CPU of the backend (GOMAXPROCS)", machineFull, "raise GOMAXPROCS to the cores that it may run on, or run more instances", backendCPU},
	{"memory of the service's machine", .95, "find out what grows (soak with GAUGE), bound it, or give the machine more", memoryUse},
	{"bandwidth", machineFull, "send less (compression, smaller answers), or take a faster network or instance type", bandwidth},
	{"descriptors of the backend", .98, "raise its limit of open files (ulimit -n, LimitNOFILE), and close idle connections sooner", backendFiles},
	{"descriptors of nginx", .98, "raise worker_rlimit_nofile, and the limit of the unit that starts nginx", nginxFiles},
	{"connections of nginx", 1, "raise worker_connections: a proxied request takes two", nginxConnections},
	{"accept queue of the service", 1, "raise net.core.somaxconn and the backlog of the listener, and accept sooner; clients that keep connections need fewer", acceptQueue},
	{"accept queue behind nginx", 1, "raise net.core.somaxconn before the backend starts, and keep more idle connections to it (keepalive in upstream)", upstreamQueue},
	{"CPU of the load generator", machineFull, "run the generator on more cores or machines (--runner K/N): the service did not break", generatorCPU},
	{"connections of the load generator", 1, "let the generator open more connections (MAX_CONNECTIONS): the service did not break", generatorConnections},
	{"the generator's ports and descriptors", 1, "widen net.ipv4.ip_local_port_range, raise ulimit -n, or add runners' machines: the service did not break", generatorPorts},
}

// noAdvice is for a service that broke while nothing was full.
const noAdvice = "it waits for something of its own: look for a lock, a pool, a limit of requests or a database behind it, in its own metrics and profiles"

func unknown(why string) Use { return Use{Text: "not known: " + why, Brief: "not known"} }

// partOf is one of a share, 0 to 1.
func partOf(share float64, text string) Use {
	return Use{true, share, text, fmt.Sprintf("%.0f %%", 100*share)}
}

func cpu(share float64, more string) Use {
	return partOf(share, fmt.Sprintf("%.0f %% busy%s", 100*share, more))
}

// failed is one of a resource that shows only by what it refused.
func failed(st *StageResult, events float64, text string) Use {
	u := Use{Known: true, Text: "none refused", Brief: count(events)}
	if events > 0 {
		u.Text = fmt.Sprintf("%s %s", count(events), text)
	}
	if events*oneOf >= float64(max(st.Total(), 1)) {
		u.Share = 1
	}
	return u
}

// theRest takes what is neither the service's nor the generator's: the kernel's share is what it does for packets.
const theRest = "others and the kernel"

const (
	tooSoon   = "the stage was over too soon"
	noSamples = "the service is not on this machine, or the stage was over too soon"
	elsewhere = "no Prometheus watches the service's machine (PROMETHEUS_URL)"
)

func throttled(st *StageResult) Use {
	t := st.Machine.Taken
	switch {
	case !t.Inside:
		return unknown(noSamples)
	case t.Periods == 0:
		return Use{true, 0, "it has none", "none"}
	}
	return partOf(t.Throttled/t.Periods, fmt.Sprintf("reached in %.0f %% of the time", 100*t.Throttled/t.Periods))
}

// serviceCPU returns the use of the service's cores. It is full if the cores are, and the service used at least half of them.
func serviceCPU(st *StageResult) Use {
	m := st.Machine
	busy, _, why := m.serviceCores()
	switch {
	case why != "":
		return unknown(why)
	case !m.Taken.Inside && m.Backend+m.Nginx == 0:
		return unknown("no process of the service was found")
	}
	if m.mostCPU() != byService {
		took := m.Backend + m.Nginx
		return Use{true, 0, fmt.Sprintf("%.0f %% of a core, of cores that were %.0f %% busy", took, 100*busy), fmt.Sprintf("%.0f %%", took)}
	}
	return cpu(busy, m.parts())
}

// machineCPU is like serviceCPU for cores of which no known user took half.
func machineCPU(st *StageResult) Use {
	m := st.Machine
	busy, _, why := m.serviceCores()
	if why != "" {
		return unknown(why)
	}
	if most := m.mostCPU(); most != "" {
		u := cpu(busy, ", most of it by "+most)
		u.Share = 0
		return u
	}
	return cpu(busy, m.parts())
}

// parts returns the known users of the service's cores, in brackets.
func (m Machine) parts() string {
	_, others, _ := m.serviceCores()
	var parts []string
	for _, p := range []struct {
		name    string
		percent float64
		known   bool
	}{{"backend", m.Backend, m.Backend > 0}, {"nginx", m.Nginx, m.Nginx > 0}, {theRest, 100 * others, m.Taken.Inside && others > .1}} {
		if p.known {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", p.name, p.percent))
		}
	}
	text := ""
	if len(parts) > 0 {
		text = " (" + strings.Join(parts, ", ") + " of a core)"
	}
	if m.Shared && !m.Apart {
		text += ", shared with the load generator"
	}
	return text
}

// The possible main users of the service's cores.
const (
	byService   = "the service"
	byGenerator = "the load generator"
	byPrograms  = "other programs"
)

// mostCPU returns the user of at least half of the CPU time spent on the service's cores; "" if there is none, or it is not known.
// CPU time of unknown processes is never attributed to the service.
func (m Machine) mostCPU() string {
	busy, others, _ := m.serviceCores()
	half := busy * m.Taken.TargetCores / 2
	switch {
	case m.Shared && !m.Apart && m.Runners/100 > half:
		return byGenerator
	case (m.Backend+m.Nginx)/100 >= half:
		return byService
	case m.Taken.Inside && others >= half:
		return byPrograms
	}
	return ""
}

// serviceCores says how busy the cores are that the service has, 0 to 1, and how much of a core others than the service and
// the generator took there; or why nobody knows.
func (m Machine) serviceCores() (busy, others float64, why string) {
	taken, cores := m.Host/100, m.Taken.TargetCores
	others = taken - (m.Backend+m.Nginx)/100
	switch {
	case m.Short:
		return 0, 0, tooSoon
	case m.Apart:
		taken = m.ServiceBusy * cores
		return m.ServiceBusy, taken - (m.Backend+m.Nginx)/100, ""
	case !m.Taken.Host || cores == 0:
		return 0, 0, elsewhere
	case m.Shared:
		others -= m.Runners / 100
	}
	return taken / cores, others, ""
}

// othersCPU is full where others took more than half of full cores.
func othersCPU(st *StageResult) Use {
	m := st.Machine
	busy, others, why := m.serviceCores()
	switch {
	case why != "":
		return unknown(why)
	case !m.Taken.Inside:
		return unknown(noSamples) // what is no backend of ours counts as others
	}
	u := cpu(busy, fmt.Sprintf(", %.0f %% of a core by %s", max(100*others, 0), theRest))
	u.Brief = fmt.Sprintf("%.0f %%", max(100*others, 0))
	if m.mostCPU() != byPrograms {
		u.Share = 0
	}
	return u
}

func backendCPU(st *StageResult) Use {
	m := st.Machine
	if m.Short || m.Taken.Procs == 0 || m.Backend == 0 {
		return unknown("it is no backend that tells its CPU")
	}
	return cpu(m.Backend/100/m.Taken.Procs, fmt.Sprintf(", of %s", format.Count(int(m.Taken.Procs), "core")))
}

func memoryUse(st *StageResult) Use {
	t := st.Machine.Taken
	switch {
	case t.Killed > 0:
		return partOf(1, fmt.Sprintf("the kernel killed %s for want of it", format.Plural(int(t.Killed), "process", "processes")))
	case !t.Host || t.Memory == 0 || t.Available == 0:
		return unknown(elsewhere)
	}
	share := 1 - t.Available/t.Memory
	return partOf(share, fmt.Sprintf("%.0f %% of %s", 100*share, format.Bytes(uint64(t.Memory))))
}

func bandwidth(st *StageResult) Use {
	t := st.Machine.Taken
	switch {
	case t.Loopback:
		return Use{true, 0, "over loopback, which has no limit", "no limit"}
	case st.Machine.Dropped+t.Allowance > 0:
		return partOf(1, fmt.Sprintf("AWS held back or dropped %s", format.Count(int(st.Machine.Dropped+t.Allowance), "packet")))
	case t.Link >= 0:
		return partOf(t.Link, fmt.Sprintf("%.0f %% of this machine's network cards", 100*t.Link))
	case t.Allowed:
		return Use{true, 0, "AWS held nothing back", "0"}
	}
	return unknown("neither network cards nor AWS say how much there is")
}

func backendFiles(st *StageResult) Use {
	t := st.Machine.Taken
	if t.MaxFiles == 0 || t.Files == 0 {
		return unknown("it is no backend that tells its descriptors")
	}
	return partOf(t.Files/t.MaxFiles, fmt.Sprintf("%s of %s open", count(t.Files), count(t.MaxFiles)))
}

func nginxFiles(st *StageResult) Use {
	t := st.Machine.Taken
	if !t.Proxy {
		return unknown("no nginx on this machine is known to stand before the service")
	}
	if u := failed(st, float64(t.Log.NoFiles), "times there was none"); u.Share > 0 {
		return u
	}
	return partOf(t.NginxFull, fmt.Sprintf("%.0f %% of the fullest process open", 100*t.NginxFull))
}

func nginxConnections(st *StageResult) Use {
	if !st.Machine.Taken.Proxy {
		return nginxFiles(st)
	}
	return failed(st, float64(st.Machine.Taken.Log.NoConnections), "times there was none")
}

func acceptQueue(st *StageResult) Use {
	if !st.Machine.Taken.Queue {
		return unknown(elsewhere)
	}
	return failed(st, st.Machine.Taken.Overflows, "connects found it full (ListenOverflows)")
}

func upstreamQueue(st *StageResult) Use {
	if !st.Machine.Taken.Proxy {
		return nginxFiles(st)
	}
	return failed(st, float64(st.Machine.Taken.Log.QueueFull), "connects of nginx found it full")
}

func generatorCPU(st *StageResult) Use {
	m := st.Machine
	switch {
	case m.Short:
		return unknown(tooSoon)
	case m.Apart:
		return cpu(m.GeneratorBusy, fmt.Sprintf(" (runners %.0f %% of a core)", m.Runners))
	case m.Taken.GeneratorCores == 0:
		return unknown("the runners' machines do not say how many cores they have")
	}
	return cpu(m.Runners/100/m.Taken.GeneratorCores, "")
}

func generatorConnections(st *StageResult) Use {
	switch {
	case st.held != "":
		return Use{true, 1, fmt.Sprintf("all %d in use", st.Connections), "all"}
	case st.Waiting > 0:
		return Use{true, 0, fmt.Sprintf("%s waited for one of %d, because answers took longer", format.Count(int(st.Waiting), "request"), st.Connections), "slow answers"}
	}
	return Use{true, 0, "enough", "enough"}
}

func generatorPorts(st *StageResult) Use {
	var n int64
	for code, times := range st.Codes {
		if isOurs(code) {
			n += times
		}
	}
	return failed(st, float64(n), "connects found none")
}
