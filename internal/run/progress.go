package run

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// plainEvery is how often a line appears where there is no terminal to draw on.
const plainEvery = 30 * time.Second

// showProgress shows one line that is kept up to date on a terminal, or a line now and then
// elsewhere, until ctx ends. The run takes about total.
func showProgress(ctx context.Context, total time.Duration, line func() string) {
	started := time.Now()
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		plainProgress(ctx, started, total, line)
		return
	}
	var text atomic.Pointer[string]
	update := func() { now := line(); text.Store(&now) }
	update()
	bars := mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(20), mpb.WithRefreshRate(time.Second))
	bar := bars.AddBar(int64(total/time.Second), mpb.BarFillerTrim(),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			return clock(min(time.Since(started), total)) + "/" + clock(total) + " "
		})),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + *text.Load() })),
	)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			update()
			bar.Abort(false)
			bars.Wait()
			return
		case <-tick.C:
			update()
			bar.SetCurrent(min(int64(time.Since(started)/time.Second), int64(total/time.Second)-1))
		}
	}
}

func plainProgress(ctx context.Context, started time.Time, total time.Duration, line func() string) {
	tick := time.NewTicker(min(plainEvery, max(total/6, time.Second)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fmt.Fprintf(os.Stderr, "%s/%s %s\n", clock(time.Since(started)), clock(total), line())
		}
	}
}

// progress begins with what matters most, since a narrow terminal cuts off the end.
func (s *session) progress(group running, m *meter) string {
	sum, lateness := group.Progress()
	var parts []string
	switch p := s.here(); {
	case s.Suite.Planned && s.counting() == shard.CountsNothing:
		parts = append(parts, fmt.Sprintf("%d/%d open", sum.Open, p.Connections), fmt.Sprintf("%d heartbeats", sum.Heartbeats))
	case s.Suite.Planned:
		parts = append(parts, fmt.Sprintf("%d/%d open", sum.Open, p.Connections),
			s.received(sum.Received, p.Connections*p.NoopsPerConnection()), fmt.Sprintf("%d missed", sum.Missed()))
	case s.Suite.Streams:
		parts = append(parts, fmt.Sprintf("%d open · %d noops · %d missed · %d late", sum.Open, sum.Received, sum.Missed(), sum.Late))
	default:
		parts = append(parts, fmt.Sprintf("%d requests", sum.Requests))
		if sum.Stage != "" { // k6's REST API knows neither stage nor answers that are wrong
			parts = []string{sum.Stage, parts[0], fmt.Sprintf("%d failed", sum.Failed)}
		}
	}
	for _, bad := range []struct {
		count int
		name  string
	}{{sum.Refused, "refused"}, {sum.Dropped, "dropped"}, {sum.Reconnected, "reconnects"}, {int(min(sum.Faults(), 1<<30)), "faulty"}} {
		if bad.count > 0 && s.Suite.Planned {
			parts = append(parts, fmt.Sprintf("%d %s", bad.count, bad.name))
		}
	}
	if sum.Published > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d confirmed", sum.Confirmed, sum.Published))
	}
	if lateness.Count() > 0 && s.Suite.Planned {
		parts = append(parts, fmt.Sprintf("late p99 %.1f ms", float64(lateness.Quantile(.99).Microseconds())/1000))
	}
	if b := m.backend(); b != "" {
		parts = append(parts, b)
	}
	return strings.Join(parts, " · ")
}

// received says how much has come, of how much where the clock says it. The publisher begins when the streams are open, and
// ends before they do; others publish when they like.
func (s *session) received(count uint64, planned int) string {
	if s.Plan.Described() && (s.service == nil || s.Plan.Published() || s.service.Message.Interval == 0) {
		return fmt.Sprintf("%d messages", count)
	}
	return fmt.Sprintf("%d/%d %s", count, planned, s.messages())
}

func clock(d time.Duration) string {
	s := int(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}
