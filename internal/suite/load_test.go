package suite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

var limits = Limits{FailedShare: .01, P95: 500, AnsweredShare: .95}

// level returns the level of a sustained load. The generator adds no delay unless edit sets one. edit may be nil.
func level(load float64, edit func(*Level)) Level {
	v := Level{Load: load, AnsweredShare: 1, P95: 20}
	if edit != nil {
		edit(&v)
	}
	if v.GeneratorDelay == "" {
		v.UndelayedAnsweredShare, v.UndelayedFailedShare, v.UndelayedP95 = v.AnsweredShare, v.FailedShare, v.P95
	}
	return v
}

func setRefused(v *Level)     { v.FailedShare, v.HardFailureShare, v.AnsweredShare = .2, .2, .8 }
func setSlow(v *Level)        { v.P95 = 800 }
func setTimeouts(v *Level)    { v.FailedShare, v.AnsweredShare = .05, .95 }
func setUnanswered(v *Level)  { v.AnsweredShare = .7 }
func setFullMachine(v *Level) { v.MachineLimit = "the machine was full" }

// setSaturated makes the delays of the generator explain all failures except refusals.
func setSaturated(v *Level) {
	v.GeneratorDelay = "the load generator waited up to 300 ms to run"
	v.UndelayedP95, v.UndelayedFailedShare, v.UndelayedAnsweredShare = 10, v.HardFailureShare, 1-v.HardFailureShare
}

func combine(a, b func(*Level)) func(*Level) { return func(v *Level) { a(v); b(v) } }

func TestStatusOfALevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		edit     func(*Level)
		want     Status
		wantText string
	}{
		{"no fault", nil, Good, ""},
		{"at the limits", func(v *Level) { v.FailedShare, v.P95, v.AnsweredShare = .01, 500, .95 }, Good, ""},
		{"saturated generator without a fault", setSaturated, Good, ""},
		{"refused", setRefused, Bad, "20.00 % failed, 80.0 % answered"},
		{"just beyond the limits", func(v *Level) { v.FailedShare, v.AnsweredShare = .010004, .94999 }, Bad, "1.0004 % failed, 94.999 % answered"},
		{"slow", setSlow, Bad, "p95 800 ms"},
		{"timeouts", setTimeouts, Bad, "5.00 % failed"},
		{"requests not made, and the generator did not wait", setUnanswered, Bad, "70.0 % answered"},
		{"slow because of delays of the generator", combine(setSlow, setSaturated), ByGenerator, "p95 800 ms; the load generator waited up to 300 ms to run"},
		{"slow even without delays of the generator", combine(setSlow, combine(setSaturated, func(v *Level) { v.UndelayedP95 = 770 })), Bad, "p95 800 ms"},
		{"timeouts of a saturated generator", combine(setTimeouts, setSaturated), ByGenerator, "5.00 % failed"},
		{"requests not made by a saturated generator", combine(setUnanswered, setSaturated), ByGenerator, "70.0 % answered"},
		{"refused, with a saturated generator", combine(setRefused, setSaturated), Bad, "20.00 % failed"},
		{"slow on a full machine", combine(setSlow, setFullMachine), ByGenerator, "p95 800 ms; the machine was full"},
		{"timeouts on a full machine", combine(setTimeouts, setFullMachine), ByGenerator, "the machine was full"},
		{"refused on a full machine", combine(setRefused, setFullMachine), Bad, "20.00 % failed"},
	} {
		got := limits.Judge(level(100, c.edit))
		require.Equal(t, c.want, got.Status, c.name)
		require.Contains(t, got.Reason, c.wantText, c.name)
	}
}

func TestFindBreakingPoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		levels            []Level
		sustained, failed float64
		status            Status
		wantText          string
		next              float64
	}{
		{"no load", nil, 0, 0, "", "not found: no load was tried", 0},
		{"all good", []Level{level(100, nil), level(20, nil)}, 100, 0, "", "not reached: 100 requests/s were sustained", 0},
		{"good below bad", []Level{level(500, nil), level(1000, setRefused), level(20, nil)}, 500, 1000, Bad, "between 500 and 1,000 requests/s (20.00 % failed", 750},
		{"the lowest load is bad", []Level{level(20, setSlow), level(50, nil)}, 0, 20, Bad, "below 20 requests/s", 0},
		{"a good load above a bad one does not count", []Level{level(20, nil), level(50, setRefused), level(100, nil)}, 20, 50, Bad, "between 20 and 50", 35},
		{"saturated generator above a good load", []Level{level(500, nil), level(1000, combine(setUnanswered, setSaturated))}, 500, 1000, ByGenerator, "not found: at 1,000 requests/s the load generator was saturated", 0},
		{"saturated generator between good and bad", []Level{level(500, nil), level(750, combine(setUnanswered, setSaturated)), level(1000, setRefused)}, 500, 1000, Bad, "between 500 and 1,000 requests/s (20.00 % failed, 80.0 % answered); at 750 the load generator was saturated, so this range cannot be narrowed down", 625},
		{"a good load above one with a saturated generator does not count", []Level{level(500, nil), level(750, combine(setUnanswered, setSaturated)), level(800, nil), level(1000, setRefused)}, 500, 1000, Bad, "between 500 and 1,000", 625},
		{"saturated generator at the lowest load", []Level{level(500, combine(setUnanswered, setSaturated)), level(1000, setRefused)}, 0, 1000, Bad, "between 0 and 1,000 requests/s", 0},
		{"the generator was saturated 10 % above the sustained load", []Level{level(500, nil), level(550, combine(setUnanswered, setSaturated)), level(1000, setRefused)}, 500, 1000, Bad, "at 550 the load generator was saturated", 0},
		{"no whole number between", []Level{level(4, nil), level(5, setSlow)}, 4, 5, Bad, "between 4 and 5", 0},
		{"the repeated load is good", []Level{level(100, nil), level(110, setSlow), level(100, nil)}, 100, 110, Bad, "between 100 and 110", 0},
		{"the generator was saturated at the repeated load", []Level{level(100, nil), level(110, setSlow), level(100, combine(setUnanswered, setSaturated))}, 100, 110, Bad, "between 100 and 110 requests/s (p95 800 ms)", 0},
		{"the repeated load is bad", []Level{level(100, nil), level(110, setSlow), level(100, setSlow)}, 100, 100, BadOnRetry, "not found: 100 requests/s were sustained at first", 0},
		{"known to within 10 %", []Level{level(100, nil), level(110, setSlow)}, 100, 110, Bad, "between 100 and 110", 0},
	} {
		b := findBreakingPoint(limits.Trials(c.levels))
		require.InDelta(t, c.sustained, b.Sustained, 0, c.name)
		require.InDelta(t, c.failed, b.Failed, 0, c.name)
		require.Equal(t, c.status, b.Status, c.name)
		require.Contains(t, b.Sentence(perSecond), c.wantText, c.name)
		require.InDelta(t, c.next, b.NextLoad(), 0, c.name)
	}
}

// If the generator was saturated between the sustained and the bad rate, it is unknown whether the service sustains the
// rates in between.
func TestMinimumRateWithSaturatedGenerator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minimum       string
		pass, invalid bool
	}{{"500", true, true}, {"800", false, true}, {"1000", false, false}} {
		b := BreakingPoint{Sustained: 500, Unclear: 750, Failed: 1000, Status: Bad}
		got := b.checkSustained(runOf("rampup", map[string]string{"MIN_RATE": c.minimum}), "MIN_RATE", "requests/s sustained")
		require.Equal(t, c.pass, got.Pass, c.minimum)
		require.Equal(t, c.invalid, got.Severity == verdict.SeverityInconclusive, c.minimum)
	}
}
