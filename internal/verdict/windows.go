package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A Window has the sums of one part of a run. All windows but the last have the same length.
type Window struct {
	StartUnix float64 `json:"start_unix_s"`
	Seconds   float64 `json:"seconds"`
	Open      int     `json:"open"`   // streams at the end of the window
	Opened    int     `json:"opened"` // streams that opened in the window, including reconnects
	Closed    int     `json:"closed"` // streams that closed in the window, for any reason
	Messages  int     `json:"messages"`
	// Faults is the number of messages that were lost, duplicated, reordered, corrupted or of another topic, by the
	// time of detection. It is the higher of two counts: the listed findings, and the faults that the runners detected.
	Faults   int     `json:"faults"`
	Late     int     `json:"late"`
	Lateness float64 `json:"lateness_p99_ms"`
	Connect  float64 `json:"connect_avg_ms,omitempty"` // 0: no stream opened
	// ControlLate is the maximum lateness of an event of the control group, excluding delays of its reference server.
	ControlLate float64 `json:"control_lateness_max_ms,omitempty"`
	Memory      uint64  `json:"backend_rss_max_bytes,omitempty"`
	RunnerMem   uint64  `json:"runner_rss_max_bytes"` // maximum memory of all runners together
	RunnerCPU   float64 `json:"runner_cpu_avg_percent"`
}

// maxWindows limits the number of windows, because shards may have invalid times.
const maxWindows = 10_000

// windowsOf divides a run into windows; nil if the run is not longer than one window, or has too many.
func (v *Verdict) windowsOf(samples []resources.Sample) []Window {
	series, length := v.streams.m.Series, int64(v.Plan.Window()/time.Second)
	if len(series) == 0 {
		return nil
	}
	start, end := series[0].Unix, series[len(series)-1].Unix+int64(shard.BucketWidth/time.Second)
	if int64(v.Plan.Seconds) <= length || end-start <= length || (end-start)/length > maxWindows {
		return nil
	}
	out := make([]Window, (end-start+length-1)/length)
	number := func(unix int64) int64 { return min(max((unix-start)/length, 0), int64(len(out)-1)) }
	for i := range out {
		from := start + int64(i)*length
		out[i].StartUnix, out[i].Seconds = float64(from), float64(min(from+length, end)-from)
	}
	lateness := make([]*shard.Histogram, len(out))
	for i := range series {
		b := &series[i]
		out[number(b.Unix)].add(b)
		if b.Lateness == nil {
			continue
		}
		n := number(b.Unix)
		if lateness[n] == nil {
			lateness[n] = shard.NewHistogram()
		}
		if h, err := b.Lateness.Unpack(); err == nil { // a merge reports histograms that it cannot unpack
			lateness[n].Merge(h)
		}
	}
	for i, h := range lateness {
		if h != nil {
			out[i].Lateness = format.InMilliseconds(h.Quantile(.99))
		}
		out[i].RunnerCPU /= out[i].Seconds / shard.BucketWidth.Seconds()
		out[i].Connect /= float64(max(out[i].Opened, 1))
	}
	for i := range samples {
		w := &out[number(samples[i].Unix)]
		w.Memory = max(w.Memory, samples[i].BackendRSS)
	}
	for i, n := range v.FaultsByPeriod(number) {
		out[i].Faults = max(out[i].Faults, n)
	}
	return out
}

// FaultsByPeriod returns the number of messages with a fault in each period, by the listed findings. It calls periodOf
// with the Unix time of each finding.
func (v *Verdict) FaultsByPeriod(periodOf func(unix int64) int64) map[int64]int {
	faults := map[int64]int{}
	for _, c := range v.Records() {
		for _, f := range c.Findings {
			switch f.Kind {
			case ledger.KindLost, ledger.KindUnsent, ledger.KindTail, ledger.KindDuplicated, ledger.KindReordered, ledger.KindCorrupted, ledger.KindMisrouted:
				faults[periodOf(v.streams.m.Runners[c.Runner].At(f.At).Unix())] += clamp.Int(max(f.Count, 1))
			default:
			}
		}
	}
	return faults
}

// add adds a bucket. Connect becomes a sum of connect times, which the caller divides by the number of streams.
func (w *Window) add(b *shard.Bucket) {
	w.Open, w.Opened, w.Closed = b.Open, w.Opened+b.Opened, w.Closed+b.Closed
	w.Messages, w.Faults, w.Late = w.Messages+b.Noops, w.Faults+b.Faults, w.Late+b.Late
	w.RunnerMem, w.RunnerCPU = max(w.RunnerMem, b.RSS), w.RunnerCPU+b.CPUPercent
	w.Connect += float64(b.ConnectUS) / 1000
	if b.Control != nil {
		w.ControlLate = max(w.ControlLate, float64(b.Control.LongestUS)/1000)
	}
}

// worstWindow describes the window with the most faults and, among equals, the most late messages. It returns "" if no
// window has a fault or a late message.
func (v *Verdict) worstWindow() string {
	if len(v.Windows) == 0 {
		return ""
	}
	w := slices.MaxFunc(v.Windows, func(a, b Window) int {
		return cmp.Or(cmp.Compare(a.Faults, b.Faults), cmp.Compare(a.Late, b.Late), cmp.Compare(b.StartUnix, a.StartUnix))
	})
	if w.Faults+w.Late == 0 {
		return ""
	}
	return fmt.Sprintf("the worst of %d windows of %s began at %s: %s faulty, %s late", len(v.Windows), format.Duration(v.Plan.Window()),
		format.Time(time.Unix(int64(w.StartUnix), 0)), format.Count(w.Faults, "message"), format.Thousands(w.Late))
}
