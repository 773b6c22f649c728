package suite

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// What the generator is to blame for is said here, and nowhere else. It is what its own waits explain, at
// the moment at which something was slow or failed:
//
//   - To each answer it can have added shard.WakeUps times the longest that it had to wait meanwhile. What
//     is left is the service's own time. A load that is too slow with the services' own times is too slow.
//   - A timeout is the generator's where it can have added at least half of what the request took; and that
//     no connection was made because this host has no addresses, ports or descriptors left, always.
//     Every other failure is an answer of the service, or the end of a connection: no wait explains it.
//   - Requests that were never made are the generator's where it waited, before it left them out, for half
//     of the time that a virtual user has for a request; or where more of its virtual users' time went into
//     its own waits than into the service's times.
//   - Where service and runners share a machine that is full, and the service took less than half of it,
//     it may have waited for a core as the runners did. Slowness and timeouts are not the service's there
//     where the runners took more than half of the machine, or waited at any moment of that load for so
//     long that it explains them.

// codes of failures that the generator can have made.
func isTimeout(code string) bool {
	return code == shard.CodeNet+"1050" || code == shard.CodeNet+"1211" || code == "1050" || code == "1211"
}

func isOurs(code string) bool { return code == shard.CodeNet+"1213" || code == "1213" }

// excuse looks, when all of a stage's requests have been added, for what the waits of the generator explain.
func (st *StageResult) excuse(dropped shard.Metric) {
	if st.bare { // a shard of an older version: the longest stall of the stage stands for every moment
		st.Own = st.OK.Less(shard.WakeUps * st.Machine.Wait)
	}
	for _, f := range st.metrics {
		switch {
		case isOurs(f.Tags[shard.TagCode]):
			st.Excused += f.Count
		case isTimeout(f.Tags[shard.TagCode]):
			own := f.Own
			if own == nil {
				own = f.Trend.Less(shard.WakeUps * st.Machine.Wait)
			}
			half := time.Duration(f.Min / 2 * float64(time.Millisecond))
			st.Excused += own.CountBy([]time.Duration{half})[0]
		}
	}
	if st.Dropped > 0 && (st.waitedBefore(dropped) || st.waitedMore()) {
		st.ExcusedDropped = st.Dropped
	}
}

// patience is the time that a virtual user has for a request before there is none for the next one; of a
// closed model, the stage's.
func (st *StageResult) patience() time.Duration {
	seconds := st.Seconds
	if st.Rate > 0 {
		seconds = float64(st.MaxVUs) / st.Rate
	}
	return time.Duration(seconds * float64(time.Second))
}

// waitedBefore says that a runner waited long before it left requests out.
func (st *StageResult) waitedBefore(dropped shard.Metric) bool {
	from, to := time.UnixMicro(dropped.FirstUS).Add(-st.patience()), time.UnixMicro(dropped.LastUS)
	for _, s := range st.seconds {
		if overlap(time.UnixMicro(s.FromUS), time.UnixMicro(s.ToUS), from, to) > 0 && 2*waitOf(s) >= st.patience() {
			return true
		}
	}
	return false
}

// waitedMore says that more of the virtual users' time went into the generator's own waits than into the
// service's times.
func (st *StageResult) waitedMore() bool { return 2*spent(st.Own) < spent(st.OK) }

// waitOf is the longest wait of a second; older shards have only the stall.
func waitOf(s shard.Second) time.Duration {
	return time.Duration(max(s.WaitMS, s.StallMS)) * time.Millisecond
}

// spent is the sum of a histogram, to its precision.
func spent(h *shard.Histogram) time.Duration {
	return time.Duration(float64(h.Mean()) * float64(h.Count()))
}

// level is a stage as a load that was offered so many requests.
func (st *StageResult) level(load, offered float64) Level {
	v := Level{
		Load: load, FailedShare: st.FailedShare(), P95: quantile(st.OK, .95),
		OwnFailed: share(st.Failed.Count()-st.Excused, st.Total()), OwnP95: quantile(st.Own, .95),
	}
	took := st.OK.Quantile(.95)
	for _, f := range st.metrics {
		if isTimeout(f.Tags[shard.TagCode]) {
			took = max(took, f.Trend.Max())
		}
	}
	v.Full = st.Machine.crowded(took)
	var firm int64
	for code, n := range st.Codes {
		if !isTimeout(code) && !isOurs(code) {
			firm += n
		}
	}
	v.Firm = share(firm, st.Total())
	if offered > 0 {
		v.Answered = min(float64(st.OK.Count())/offered, 1)
		v.OwnAnswered = min(float64(st.OK.Count()+st.Excused+st.ExcusedDropped)/offered, 1)
	}
	var excuses []string
	if st.Excused > 0 {
		excuses = append(excuses, fmt.Sprintf("%s of them by its own waits, or for want of ports or descriptors", format.Thousands(st.Excused)))
	}
	if st.ExcusedDropped > 0 {
		excuses = append(excuses, fmt.Sprintf("it left %s requests out", format.Thousands(st.ExcusedDropped)))
	}
	excuses = append(excuses, fmt.Sprintf("it waited up to %s to run", ms(1000*st.Machine.Wait.Seconds())))
	v.Excuse = strings.Join(excuses, ", ")
	return v
}
