package requests

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/types"
)

// An options holds the validated options of a call.
type options struct {
	operations  []*operation
	concurrency int64
	requests    int64         // 0: as many as the time allows
	rate        float64       // per second
	length      time.Duration // 0: as long as the requests take
	timeout     time.Duration
}

const defaultTimeout = 10 * time.Second

// needed are the options that each model has, with a "?" behind those that it can do without.
var needed = map[string][]string{
	"closed": {"operations", "concurrency", "requests?", "seconds?", "timeout?", "tags?"},
	"open":   {"operations", "rate", "seconds", "concurrency", "timeout?", "tags?"},
	"burst":  {"operations", "requests", "timeout?", "tags?"},
}

// parse reads the argument of a call. An error is one sentence.
func (m *module) parse(model string, v sobek.Value, state *lib.State) (*stage, error) {
	s := &stage{m: m, state: state, dialer: newDialer(state), tags: state.Tags.GetCurrentValues(), prefix: strings.ToLower(rand.Text()[:12]), options: options{timeout: defaultTimeout}}
	wrong := func(format string, args ...any) (*stage, error) {
		return nil, fmt.Errorf(model+": "+format, args...)
	}
	if common.IsNullish(v) {
		return wrong("there are no options; it needs %s", strings.Join(needed[model], ", "))
	}
	object := v.ToObject(m.vu.Runtime())
	for _, name := range needed[model] {
		optional := strings.HasSuffix(name, "?")
		name = strings.TrimSuffix(name, "?")
		value := object.Get(name)
		if common.IsNullish(value) {
			if !optional {
				return wrong("%s is missing", name)
			}
			continue
		}
		if err := s.set(m, name, value); err != nil {
			return wrong("%s %w", name, err)
		}
	}
	for _, name := range object.Keys() {
		if !slices.Contains(needed[model], name) && !slices.Contains(needed[model], name+"?") {
			return wrong("there is no option %q; there are %s", name, strings.Join(needed[model], ", "))
		}
	}
	if model == "closed" && s.requests == 0 && s.length == 0 {
		return wrong("it has neither requests nor seconds, so it would never end")
	}
	var err error
	s.tuple, err = lib.NewExecutionTuple(state.Options.ExecutionSegment, state.Options.ExecutionSegmentSequence)
	if err != nil {
		return wrong("the execution segment: %w", err)
	}
	// The wait for --rps would count as the service's, for a time counts from when its request was due.
	if rps := state.Options.RPS; model == "open" && rps.Valid && rps.Int64 > 0 && float64(rps.Int64) < s.ownRate() {
		return wrong("k6's option rps allows %d requests per second, and %.6g are due here: leave it out", rps.Int64, s.ownRate())
	}
	s.record.init(s)
	return s, nil
}

// ownRate returns this runner's part of the rate.
func (s *stage) ownRate() float64 {
	n, tuple := s.share(s.concurrency)
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
		s.concurrency, err = whole(value)
	case "requests":
		s.requests, err = whole(value)
	case "rate":
		s.rate, err = positive(value)
	case "seconds":
		var seconds float64
		seconds, err = positive(value)
		s.length = time.Duration(seconds * float64(time.Second))
	case "timeout":
		s.timeout, err = types.GetDurationValue(value.Export())
		if err != nil || s.timeout <= 0 {
			err = fmt.Errorf("is %v: it must be a number of milliseconds or a text such as \"10s\", over 0", value)
		}
	case "tags":
		if err = common.ApplyCustomUserTags(m.vu.Runtime(), &s.tags, value); err != nil {
			err = fmt.Errorf("cannot be read: %w", err)
		}
	}
	return err
}

func positive(v sobek.Value) (float64, error) {
	f := v.ToFloat()
	if !(f > 0) || f > 1e9 {
		return 0, fmt.Errorf("is %v: it must be a number over 0, and at most 1e9", v)
	}
	return f, nil
}

func whole(v sobek.Value) (int64, error) {
	f, err := positive(v)
	if err != nil || f != math.Trunc(f) {
		return 0, errors.New("is " + v.String() + ": it must be a whole number over 0, and at most 1e9")
	}
	return int64(f), nil
}
