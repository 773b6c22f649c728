package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func readVerdict(run string) (v *verdict.Verdict, err error) {
	text, err := os.ReadFile(filepath.Join(run, results.VerdictFile))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("read the verdict of the run: %w", err)
	}
	return v, nil
}

// unmet returns the first of the reasons, of which there may be thousands that say the same of other streams, and the checks that
// were not met.
func unmet(v *verdict.Verdict) (out []string) {
	if v.Verdict == verdict.Pass {
		return nil
	}
	if len(v.Reasons) > 0 {
		out = append(out, v.Reasons[0])
	}
	for _, c := range v.Checks {
		if !c.Pass && !c.Unjudged {
			out = append(out, fmt.Sprintf("%s: %s (limit: %s)", c.Name, c.Actual, c.Limit))
		}
	}
	return out
}

// window is the time in which all streams were open and brought messages: connecting takes a service seconds and costs
// more than holding, and nothing is published in the last two seconds.
func window(v *verdict.Verdict) (from, to time.Time) {
	begin, end := at(v.StartedUnix), at(v.EndedUnix)
	return begin.Add(min(30*time.Second, end.Sub(begin)/4)), end.Add(-3 * time.Second)
}

// perSecond is how many messages the streams received while there were any.
func perSecond(v *verdict.Verdict) float64 {
	span := v.EndedUnix - v.StartedUnix
	if p := v.Messages.Published; p != nil && p.Rate > 0 {
		span = float64(p.Planned) / p.Rate
	}
	if span <= 0 {
		return 0
	}
	return float64(v.Messages.Received) / span
}

func at(unix float64) time.Time { return time.UnixMicro(int64(unix * 1e6)) }
