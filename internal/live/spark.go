package live

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// sparks are the heights of a sparkline, from 1 ms and less to 1 s and more: lateness has no other scale that shows both.
var sparks = []rune("▁▂▃▄▅▆▇█")

// Spark draws durations; one that is negative is not known.
func Spark(of []time.Duration) string {
	var out strings.Builder
	for _, d := range of {
		if d < 0 {
			out.WriteByte(' ')
			continue
		}
		height := math.Log10(max(float64(d)/float64(time.Millisecond), 1)) / 3 * float64(len(sparks)-1)
		out.WriteRune(sparks[min(int(math.Round(height)), len(sparks)-1)])
	}
	return out.String()
}

// silentAfter is how long a runner may say nothing. It does each second; on Kubernetes it is asked every 5 s.
const silentAfter = 15 * time.Second

// Health says in words how a runner is at that time, and whether that is well.
func (r *Runner) Health(now time.Time) (words string, well bool) {
	silent := now.Sub(r.Heard)
	switch {
	case r.Ended:
		return "ended", true
	case r.Heard.IsZero():
		return "starting", true
	case r.Trouble != "":
		return r.Trouble, false
	case silent > silentAfter:
		return fmt.Sprintf("silent for %s", silent.Round(time.Second)), false
	case r.Process.StallMS >= stallMS:
		return fmt.Sprintf("stalled for %d ms", r.Process.StallMS), false
	}
	return "well", true
}

// stallMS is from when on a stall is worth a word. Verdicts have their own rule.
const stallMS = 100
