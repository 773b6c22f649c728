package suite

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
)

type measurement struct {
	isKnown bool
	share   float64 // used share of the capacity; 0 or 1 for a resource that is measured by failures
	text    string  // the use, or why it is unknown
}

// cell formats the measurement for a table, without the reason if the use is unknown; "–" if there is no measurement.
func (u measurement) cell() string {
	switch {
	case u.isKnown:
		return u.text
	case u.text == "":
		return "–"
	}
	return "not known"
}

const (
	tooShort     = "the stage was over too soon"
	noSamples    = "the service is not on this machine, or the stage was over too soon"
	noPrometheus = "no Prometheus scrapes the service's machine (PROMETHEUS_URL), or the stage was over too soon"
	noNginx      = "no nginx is known in front of the service on this machine"
)

func unknownValue(reason string) measurement { return measurement{text: "not known: " + reason} }

// usageOf returns a known measurement. Its text is sentence(text, args...).
func usageOf(share float64, text string, args ...any) measurement {
	return measurement{true, share, sentence(text, args...)}
}

// requestsPerFailure is the maximum number of requests per failure at which a resource counts as full.
const requestsPerFailure = 1000

// byFailures measures a resource by the failures that it causes when it is full. noun and text describe a failure.
func byFailures(st *StageResult, failures float64, noun, text string) measurement {
	if failures == 0 {
		return usageOf(0, "none refused")
	}
	share := 1.
	if failures*requestsPerFailure < float64(st.Total()) {
		share = 0
	}
	return usageOf(share, "%s %s", format.Count(int64(failures), noun), text)
}

// The possible main users of the service's cores.
const (
	byUnknown   = ""
	byService   = "the service"
	byGenerator = "the load generator"
	byPrograms  = "other programs"
)

const otherPrograms = "others and the kernel" // the kernel's share is its work on network packets

// mainUser returns the user of at least half of the CPU time spent on the service's cores. CPU time of unknown
// processes is never attributed to the service.
func (m Machine) mainUser() string {
	busy, otherUse, _ := m.serviceCores()
	minimum := busy * m.Usage.TargetCores / 2
	switch {
	case m.SharedHost && !m.SeparateCores && m.Runners/100 > minimum:
		return byGenerator
	case (m.Backend+m.Nginx)/100 >= minimum:
		return byService
	case m.Usage.HasProcesses && otherUse >= minimum:
		return byPrograms
	}
	return byUnknown
}

// serviceCores returns the busy share of the service's cores, and the number of these cores that other programs used.
// Other programs are all except the service and the load generator. reason states why both results are unknown; ""
// if they are known.
func (m Machine) serviceCores() (busy, otherUse float64, reason string) {
	total, cores := m.Host/100, m.Usage.TargetCores
	service := (m.Backend + m.Nginx) / 100
	switch {
	case m.TooShort:
		return 0, 0, tooShort
	case m.SeparateCores:
		return m.ServiceBusy, m.ServiceBusy*cores - service, ""
	case !m.Usage.HasHost || cores == 0:
		return 0, 0, noPrometheus
	case m.SharedHost:
		service += m.Runners / 100
	}
	return total / cores, total - service, ""
}

// cpuOf measures the service's cores, which count as full only for their main user.
func cpuOf(user string) func(*StageResult) measurement {
	return func(st *StageResult) measurement {
		m := st.Machine
		busy, otherUse, reason := m.serviceCores()
		service := m.Backend + m.Nginx
		switch {
		case reason != "":
			return unknownValue(reason)
		case user == byPrograms && !m.Usage.HasProcesses: // another service looks like other programs
			return unknownValue(noSamples)
		case user == byService && !m.Usage.HasProcesses && service == 0:
			return unknownValue("no process of the service was found")
		}
		mainUser, share := m.mainUser(), busy
		if mainUser != user {
			share = 0
		}
		switch {
		case user == byPrograms:
			return usageOf(share, "%s busy, %s of a core by %s", percent(busy), percent(max(otherUse, 0)), otherPrograms)
		case mainUser == user:
			return usageOf(share, "%s busy%s", percent(busy), m.coreUsers())
		case user == byService:
			return usageOf(share, "%s of a core, of cores that were %s busy", percent(service/100), percent(busy))
		}
		return usageOf(share, "%s busy, most of it by %s", percent(busy), mainUser)
	}
}

func (m Machine) coreUsers() string {
	_, otherUse, _ := m.serviceCores()
	var parts []string
	add := func(name string, percent float64, known bool) {
		if known {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", name, percent))
		}
	}
	add("backend", m.Backend, m.Backend > 0)
	add("nginx", m.Nginx, m.Nginx > 0)
	add(otherPrograms, 100*otherUse, m.Usage.HasProcesses && otherUse > .1)
	text := ""
	if len(parts) > 0 {
		text = " (" + strings.Join(parts, ", ") + " of a core)"
	}
	if m.SharedHost && !m.SeparateCores {
		text += ", shared with the load generator"
	}
	return text
}

// cpuLimit measures how often the service reached the CPU limit of its cgroups.
func cpuLimit(st *StageResult) measurement {
	t := st.Machine.Usage
	switch {
	case !t.HasProcesses:
		return unknownValue(noSamples)
	case t.Periods == 0:
		return usageOf(0, "no limit")
	}
	share := t.Throttled / t.Periods
	return usageOf(share, "reached %s of the time", percent(share))
}

// backendCPU measures the used share of the cores that Go may use in the backends (GOMAXPROCS).
func backendCPU(st *StageResult) measurement {
	m := st.Machine
	if m.TooShort || m.Usage.MaxCores == 0 || m.Backend == 0 {
		return unknownValue("the backend does not expose CPU metrics, or " + tooShort)
	}
	share := m.Backend / 100 / m.Usage.MaxCores
	return usageOf(share, "%s of %s busy", percent(share), format.Count(int(m.Usage.MaxCores), "core"))
}

// memoryUse measures the memory of the service's machine. It counts as full if the kernel killed a process.
func memoryUse(st *StageResult) measurement {
	t := st.Machine.Usage
	switch {
	case t.Killed > 0:
		return usageOf(1, "the kernel killed %s for lack of memory", format.Plural(int(t.Killed), "process", "processes"))
	case !t.HasHost || t.Memory == 0 || t.Available == 0:
		return unknownValue(noPrometheus)
	}
	share := 1 - t.Available/t.Memory
	return usageOf(share, "%s of %s", percent(share), format.Bytes(uint64(t.Memory)))
}

// bandwidth measures the network cards of this machine, or the packets that AWS delayed or dropped.
func bandwidth(st *StageResult) measurement {
	t := st.Machine.Usage
	packets := st.Machine.PacketsDropped + t.AllowanceExceeded
	switch {
	case t.Loopback:
		return usageOf(0, "over loopback, which has no limit")
	case packets > 0:
		return usageOf(1, "AWS delayed or dropped %s", format.Count(int(packets), "packet"))
	case t.Link >= 0:
		return usageOf(t.Link, "%s of this machine's network cards", percent(t.Link))
	case t.HasAllowanceExceeded:
		return usageOf(0, "AWS neither delayed nor dropped packets")
	}
	return unknownValue("neither the network cards nor AWS reports the capacity")
}

func backendFiles(st *StageResult) measurement {
	t := st.Machine.Usage
	if t.MaxFiles == 0 || t.Files == 0 {
		return unknownValue("the backend does not expose its descriptors, or " + tooShort)
	}
	return usageOf(t.Files/t.MaxFiles, "%v of %v open", t.Files, t.MaxFiles)
}

// nginxFiles measures the descriptors of nginx: by its failures for lack of one, or by the share that was open.
func nginxFiles(st *StageResult) measurement {
	t := st.Machine.Usage
	if u := nginxLog(func(log resources.NginxLog) int { return log.NoFiles }, "failure", "for lack of a descriptor")(st); !u.isKnown || u.share > 0 {
		return u
	}
	return usageOf(t.NginxFull, "%s open in the fullest process", percent(t.NginxFull))
}

// acceptQueue measures the accept queues of the service's machine by the connects that found one full.
func acceptQueue(st *StageResult) measurement {
	if !st.Machine.Usage.HasOverflows {
		return unknownValue(noPrometheus)
	}
	return byFailures(st, st.Machine.Usage.Overflows, "connect", "found it full (ListenOverflows)")
}

// nginxLog measures a resource by the log entries of nginx that report it full.
func nginxLog(entries func(resources.NginxLog) int, noun, text string) func(*StageResult) measurement {
	return func(st *StageResult) measurement {
		if !st.Machine.Usage.HasProxy {
			return unknownValue(noNginx)
		}
		return byFailures(st, float64(entries(st.Machine.Usage.Log)), noun, text)
	}
}

func generatorCPU(st *StageResult) measurement {
	m := st.Machine
	switch {
	case m.TooShort:
		return unknownValue(tooShort)
	case m.SeparateCores:
		return usageOf(m.GeneratorBusy, "%s busy (runners %s of a core)", percent(m.GeneratorBusy), percent(m.Runners/100))
	case m.Usage.GeneratorCores == 0:
		return unknownValue("the runners' machines do not report their cores")
	}
	share := m.Runners / 100 / m.Usage.GeneratorCores
	return usageOf(share, "%s busy", percent(share))
}

func generatorConnections(st *StageResult) measurement {
	switch {
	case st.connectionLimit != "":
		return usageOf(1, "%v of %v in use", st.Connections, st.Connections)
	case st.Waiting > 0:
		return usageOf(0, "%s waited for one of %v, because responses took longer", format.Count(int(st.Waiting), "request"), st.Connections)
	}
	return usageOf(0, "enough")
}

func generatorPorts(st *StageResult) measurement {
	var n int64
	for code, times := range st.Codes {
		if isGeneratorFailure(code) {
			n += times
		}
	}
	return byFailures(st, float64(n), "connect", "found none")
}
