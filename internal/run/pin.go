package run

import (
	"fmt"
	"runtime"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// pin gives the service that is started here and the runners cores of their own, so that neither takes the other's time, and
// what each had left can be told.
//
// Each gets half, however many there are. An answer costs the service more than it costs k6/x/requests, so with as
// many cores as the service the runners have some to spare when those of the service are full; but a handshake, or a script of
// one's own, costs both alike. nginx and the backends share theirs: any share of nginx's would be the limit of some load and
// idle at another, and one backend and three have to be compared on the same cores.
func (d *local) pin() {
	auto := d.Pin == plan.PinAuto
	switch {
	case !auto && (d.Pin != "" || !d.Suite.Target.OwnCores):
		return
	case !d.ownTarget && auto:
		d.warn("PIN=auto: the target is not started here, so the runners use all cores")
		return
	case !d.ownTarget:
		return
	}
	var threads bool
	d.targetCores, d.runnerCores, threads = process.Allowed().Halves(process.CoreOf)
	if d.targetCores == nil {
		d.record.Cores = sharing()
		if auto {
			d.warn("PIN=auto: " + d.record.Cores)
		}
		return
	}
	d.record.Cores = fmt.Sprintf("service on core %s, runners on core %s", d.targetCores, d.runnerCores)
	if threads {
		d.record.Cores += ", which are threads of one core and slow each other down"
	}
	d.record.ServiceCores, d.record.RunnerCores = d.targetCores, d.runnerCores
}

// sharing explains why service and runners share cores.
func sharing() string {
	if runtime.GOOS != "linux" {
		return "service and runners share all cores: pinning requires Linux"
	}
	return "service and runners share one core, because this process may use no other"
}
