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
	asked := d.Pin == plan.PinAuto
	switch {
	case !asked && (d.Pin != "" || !d.Suite.Target.OwnCores):
		return
	case !d.own && asked:
		d.warn("PIN=auto: the target is not started here, so the runners have all cores")
		return
	case !d.own:
		return
	}
	var threads bool
	d.targetCores, d.runnerCores, threads = process.Allowed().Halves(process.CoreOf)
	if d.targetCores == nil {
		d.seen.Cores = sharing()
		if asked {
			d.warn("PIN=auto: " + d.seen.Cores)
		}
		return
	}
	d.seen.Cores = fmt.Sprintf("service on core %s, runners on core %s", d.targetCores, d.runnerCores)
	if threads {
		d.seen.Cores += ", which are threads of one core and slow each other"
	}
	d.seen.ServiceCores, d.seen.RunnerCores = d.targetCores, d.runnerCores
}

// sharing explains why service and runners share cores.
func sharing() string {
	if runtime.GOOS != "linux" {
		return "service and runners share all cores: only on Linux can processes be kept to some"
	}
	return "service and runners share the one core that this process may run on"
}
