package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// detectVanished prepares a service that disconnects a client without acknowledgements after a time (0: the default of
// the system). gauge is the value of its gauge (fakeservice.GaugeOpen and others). The gauge must show the disconnects
// within the given seconds. The run lasts 11 s longer: clients vanish after 6 s, and streams end 5 s before the end.
func detectVanished(after time.Duration, gauge string, within int, outcomes []verdict.Outcome, checks ...verdict.CheckID) prepare {
	return func(r *rand.Rand, sc *scenario) {
		streams("vanish", fakeservice.Strike{}, outcomes)(r, sc)
		sc.Service.Nginx, sc.Service.AckTimeout, sc.Service.Gauge = false, after, gauge
		sc.Args = []string{"--prefix", sc.Plan.Prefix, "--connections", "60", "--seconds", fmt.Sprint(within + 11), "--gauge", "campaign_streams", "--max-open-late", "-1"}
		sc.want.Broken = checks
	}
}
