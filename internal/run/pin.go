package run

import (
	"fmt"
	"runtime"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// pin reserves half of the cores for a service that soak starts, and half for the runners, if the suite or --pin
// requires it. Service and runners then do not delay each other, and the idle time of each is known.
//
// Suites of plain requests require it. A response costs the service more than it costs k6/x/requests, so the runners
// have idle time when the cores of the service are busy. A handshake, or a request of a user's own script, costs the
// runners as much as the service.
//
// nginx and the backends share the cores of the service. On separate cores, nginx would be the limit at some loads and
// idle at others. Suites also compare one backend with three on the same cores.
func (d *local) pin() {
	auto := d.Pin == plan.PinAuto
	switch {
	case !auto && (d.Pin != "" || !d.Suite.Target.SeparateCores):
		return
	case !d.managesTarget && auto:
		d.warn("PIN=auto: the target is not started here, so the runners use all cores")
		return
	case !d.managesTarget:
		return
	}
	var threads bool
	d.targetCPUs, d.runnerCPUs, threads = process.AllowedCPUs().Halves(process.CoreOf)
	if d.targetCPUs == nil {
		d.record.Cores = sharingReason()
		if auto {
			d.warn("PIN=auto: " + d.record.Cores)
		}
		return
	}
	d.record.Cores = fmt.Sprintf("service on %s, runners on %s", cpuText(d.targetCPUs), cpuText(d.runnerCPUs))
	if threads {
		d.record.Cores += ", which are threads of one core and slow each other down"
	}
	d.record.ServiceCores, d.record.RunnerCores = d.targetCPUs, d.runnerCPUs
}

func cpuText(c process.CPUList) string {
	if len(c) == 1 {
		return "CPU " + c.String()
	}
	return "CPUs " + c.String()
}

func sharingReason() string {
	if runtime.GOOS != "linux" {
		return "service and runners share all cores: pinning requires Linux"
	}
	return "service and runners share one core, because this process may use no other"
}
