package main

import (
	"math/rand/v2"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// slowKind prepares the suite slow against a service of this process. action is the effect of a broadcast on clients
// that do not read (fakeservice.SlowCut and others); "": the service has no broadcasts. At least one of checks must be
// unmet, if there are any.
func slowKind(action string, outcomes []verdict.Outcome, checks []verdict.CheckID, args ...string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		streams("slow", fakeservice.Strike{}, outcomes)(r, sc)
		sc.Service.Nginx, sc.Service.Slow, sc.want.Broken = false, action, checks
		sc.Args = append([]string{
			"--prefix", sc.Plan.Prefix, "--connections", "20", "--slow-percent", "20", "--seconds", "22", "--after-seconds", "3", "--message-rate", "12", "--max-open-late", "-1",
			"--gauge", "campaign_kept_bytes",
		}, args...)
	}
}
