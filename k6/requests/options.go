package requests

import (
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/network"
)

// An options value holds the validated options of a call. concurrency, requests and rate are totals of all runners.
type options struct {
	operations  []*operation
	concurrency int64         // maximum number of lanes
	requests    int64         // 0: no limit
	rate        float64       // per second
	duration    time.Duration // 0: until all requests have ended
	timeout     time.Duration // of each request
}

const defaultTimeout = 10 * time.Second

// modelOptions lists the options of each load model. A "?" marks an optional one.
var modelOptions = map[string][]string{
	"closed": {"operations", "concurrency", "requests?", "seconds?", "timeout?", "tags?"},
	"open":   {"operations", "rate", "seconds", "concurrency", "timeout?", "tags?"},
	"burst":  {"operations", "requests", "timeout?", "tags?"},
}

// parse validates the argument of a call and returns its stage. model is a key of modelOptions.
func (m *module) parse(model string, v sobek.Value, state *lib.State) (*stage, error) {
	s := &stage{
		m: m, state: state, dialer: newDialer(state), tags: state.Tags.GetCurrentValues(), prefix: strings.ToLower(rand.Text()[:12]),
		options: options{timeout: defaultTimeout},
		record:  record{series: map[series]*metrics.TagSet{}, codeTagSets: map[string]*metrics.TagSet{}, loggedCodes: map[string]bool{}},
	}
	fail := func(format string, args ...any) (*stage, error) {
		return nil, fmt.Errorf(model+": "+format, args...)
	}
	if common.IsNullish(v) {
		return fail("options are missing; set %s (? marks an optional one)", strings.Join(modelOptions[model], ", "))
	}
	object := v.ToObject(m.vu.Runtime())
	for _, name := range modelOptions[model] {
		optional := strings.HasSuffix(name, "?")
		name = strings.TrimSuffix(name, "?")
		value := object.Get(name)
		if common.IsNullish(value) {
			if !optional {
				return fail("option %s is missing", name)
			}
			continue
		}
		if err := s.set(m, name, value); err != nil {
			return fail("%s %w", name, err)
		}
	}
	for _, name := range object.Keys() {
		if !slices.Contains(modelOptions[model], name) && !slices.Contains(modelOptions[model], name+"?") {
			return fail("unknown option %q; use %s (? marks an optional one)", name, strings.Join(modelOptions[model], ", "))
		}
	}
	if model == "closed" && s.requests == 0 && s.duration == 0 {
		return fail("the stage would never end; set requests, seconds or both")
	}
	var err error
	s.tuple, err = lib.NewExecutionTuple(state.Options.ExecutionSegment, state.Options.ExecutionSegmentSequence)
	if err != nil {
		return fail("read the execution segment: %w", err)
	}
	// The duration of a request counts from its intended start. A wait for --rps would be attributed to the service.
	if rps := state.Options.RPS; model == "open" && rps.Valid && rps.Int64 > 0 && float64(rps.Int64) < s.runnerRate() {
		return fail("k6's option rps is %d, but this runner's share of rate is %.6g requests per second; remove rps", rps.Int64, s.runnerRate())
	}
	return s, nil
}

func (s *stage) runnerRate() float64 {
	n, tuple := s.share()
	if n == 0 {
		return 0
	}
	const parts = 1e9
	return s.rate * float64(tuple.ScaleInt64(parts)) / parts
}

func (s *stage) set(m *module, name string, value sobek.Value) (err error) {
	switch name {
	case "operations":
		s.operations, err = m.compile(value, s.state)
	case "concurrency":
		s.concurrency, err = parseInteger(value)
	case "requests":
		s.requests, err = parseInteger(value)
	case "rate":
		s.rate, err = parsePositive(value)
	case "seconds":
		var seconds float64
		seconds, err = parsePositive(value)
		s.duration = time.Duration(seconds * float64(time.Second))
	case "timeout":
		s.timeout, err = network.Timeout(value)
	case "tags":
		if err = common.ApplyCustomUserTags(m.vu.Runtime(), &s.tags, value); err != nil {
			err = fmt.Errorf("must be an object of strings: %w", err)
		}
	}
	return err
}

// maxNumber is the maximum of concurrency, requests, rate and seconds. In seconds it is 32 years, less than the maximum
// of a time.Duration.
const maxNumber = 1e9

func parsePositive(v sobek.Value) (float64, error) {
	f := v.ToFloat()
	if !(f > 0) || f > maxNumber {
		return 0, fmt.Errorf("must be a positive number up to 1e9, got %s", network.Quote(v))
	}
	return f, nil
}

func parseInteger(v sobek.Value) (int64, error) {
	f, err := parsePositive(v)
	if err != nil || f != math.Trunc(f) {
		return 0, fmt.Errorf("must be a positive integer up to 1e9, got %s", network.Quote(v))
	}
	return int64(f), nil
}
