package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// detectVanished prepares a service that disconnects a client without acknowledgements after a time, and shows that
// on its gauge. It must do so within the given seconds: the rest of the run is 6 until clients vanish, and 5 at its
// end.
func detectVanished(after time.Duration, gauge string, within int, outcomes []verdict.Outcome, checks ...verdict.CheckID) prepare {
	return func(r *rand.Rand, sc *scenario) {
		streams("vanish", fakeservice.Strike{}, outcomes)(r, sc)
		sc.Service.Nginx, sc.Service.AckTimeout, sc.Service.Gauge = false, after, gauge
		sc.Args = []string{"--prefix", sc.Plan.Prefix, "--connections", "60", "--seconds", fmt.Sprint(within + 11), "--gauge", "campaign_streams", "--max-held-late", "-1"}
		sc.want.Broken = checks
	}
}
