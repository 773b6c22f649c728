package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// fallen is how far the median has to fall below that of the lowest load for a word about it.
const fallen = .9

// leastAnswers is how many answers a median is taken of.
const leastAnswers = 100

// falling says why answers to a higher load came sooner than those to the lowest one, by what was measured of both; none where
// they did not. docs/http-suites.md says what each of the causes is.
func falling(stages []StageResult, levels []Level, limits Limits) []verdict.Fact {
	var good []*StageResult
	for i := range stages {
		if status, _ := limits.Judge(levels[i]); status == Good && stages[i].OK.Count() >= leastAnswers {
			good = append(good, &stages[i])
		}
	}
	if len(good) < 2 {
		return nil
	}
	median := func(st *StageResult) float64 { return quantile(st.OK, .5) }
	low := slices.MinFunc(good, func(a, b *StageResult) int { return int(a.Rate - b.Rate) })
	fast := slices.MinFunc(good, func(a, b *StageResult) int { return int(1000 * (median(a) - median(b))) })
	if fast.Rate <= low.Rate || median(fast) >= fallen*median(low) {
		return nil
	}
	text := fmt.Sprintf("it falls from %s at %s to %s at %s: ", ms(median(low)), low.Title, ms(median(fast)), fast.Title)
	return []verdict.Fact{{Name: "p50 under load", Value: text + because(low.Machine, fast.Machine)}}
}

// because names what differs between a low load and a higher one whose answers came sooner.
func because(low, fast Machine) string {
	var seen []string
	say := func(differs bool, format string, a ...any) {
		if differs {
			seen = append(seen, fmt.Sprintf(format, a...))
		}
	}
	lowBusy, _, notLow := low.serviceCores()
	fastBusy, _, notFast := fast.serviceCores()
	known := notLow == "" && notFast == ""
	say(known && fastBusy-lowBusy > .2, "cores slept %.0f %% of the time and then %.0f %%, and one that sleeps has to be woken for an answer",
		100*max(1-lowBusy, 0), 100*max(1-fastBusy, 0))
	a, b := low.Taken, fast.Taken
	if a.PerRequest && b.PerRequest {
		say(a.Accepts > .02 && a.Accepts > 2*b.Accepts, "%.2f connections were made for each request and then %.2f", a.Accepts, b.Accepts)
		say(a.Runs > 1.2*b.Runs, "threads of backend and nginx were put on a core %.1f times for each request and then %.1f, as one that wakes takes several requests", a.Runs, b.Runs)
		say(a.Each > 1.2*b.Each, "backend and nginx computed for %.0f µs for each answer and then %.0f, as more answers share what they do anyway, and what one needs is still in the caches", 1e6*a.Each, 1e6*b.Each)
	}
	switch {
	case len(seen) > 0:
		return strings.Join(seen, "; ")
	case known && a.PerRequest && b.PerRequest:
		return "neither the sleep of the cores nor new connections, wake-ups or CPU of an answer differ enough to say why"
	}
	return "why is not known: nobody sampled what would tell it, as of a service elsewhere or in a stage of few seconds"
}
