package run

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/process"
)

// pin gives the target that is started here and the runners cores of their own, so that neither takes the other's time.
func (d *local) pin() {
	if d.Pin != plan.PinAuto {
		return
	}
	if !d.own {
		d.warn("PIN=auto: the target is not started here, so the runners have all cores")
		return
	}
	d.targetCores, d.runnerCores = process.Allowed().Halves()
	if d.targetCores == nil {
		d.warn("PIN=auto: there is one core here, or nobody can say how many, so target and runners share it")
		return
	}
	d.seen.Cores = fmt.Sprintf("target on core %s, runners on core %s", d.targetCores, d.runnerCores)
}
