package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// plainEvery is how often a line appears where there is no terminal to draw on.
const plainEvery = 30 * time.Second

// A display shows how far the runners are: on a terminal by lines that are kept up to date, elsewhere by a line now and then.
type display struct {
	out      io.Writer
	terminal bool
	total    time.Duration // that the run takes, about
	started  time.Time
	line     func() string // of all runners
	full     *fullDisplay  // nil: that line is all
}

func (s *session) display(group running, m *meter) *display {
	d := &display{
		out: os.Stderr, terminal: term.IsTerminal(int(os.Stderr.Fd())), total: s.length(), started: time.Now(),
		line: func() string { return s.progress(group, m) },
	}
	if s.Progress == plan.ProgressFull {
		d.full = &fullDisplay{watch: s.watch, runners: s.runnersHere(), noun: s.messages()}
	}
	return d
}

// show shows until ctx ends.
func (d *display) show(ctx context.Context) {
	if !d.terminal {
		d.plain(ctx)
		return
	}
	var text atomic.Pointer[string]
	bars := mpb.New(mpb.WithOutput(d.out), mpb.WithWidth(20), mpb.WithRefreshRate(time.Second))
	update := func() {
		now := d.line()
		text.Store(&now)
		if d.full != nil {
			d.full.tell(bars)
		}
	}
	update()
	seconds := int64(d.total / time.Second)
	bar := bars.AddBar(seconds, mpb.BarFillerTrim(),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			return clock(min(time.Since(d.started), d.total)) + "/" + clock(d.total) + " "
		})),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + *text.Load() })),
	)
	all := []*mpb.Bar{bar}
	if d.full != nil {
		all = append(all, d.full.bars(bars)...)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			update()
			for _, b := range all {
				b.Abort(false)
			}
			bars.Wait()
			return
		case <-tick.C:
			update()
			bar.SetCurrent(min(int64(time.Since(d.started)/time.Second), seconds-1))
		}
	}
}

func (d *display) plain(ctx context.Context) {
	every := min(plainEvery, max(d.total/6, time.Second))
	tick := time.NewTicker(every)
	defer tick.Stop()
	var news <-chan time.Time // nil: never
	if d.full != nil {
		often := time.NewTicker(time.Second)
		defer often.Stop()
		news = often.C
		defer d.full.tell(d.out)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
			d.full.tell(d.out)
		case <-tick.C:
			fmt.Fprintf(d.out, "%s/%s %s\n", clock(time.Since(d.started)), clock(d.total), d.line())
		}
	}
}

// progress begins with what matters most, since a narrow terminal cuts off the end.
func (s *session) progress(group running, m *meter) string {
	sum, lateness := group.Progress()
	var parts []string
	switch p := s.here(); {
	case s.Suite.Plan.Known && !s.service.Counted():
		parts = append(parts, fmt.Sprintf("%d/%d open", sum.Open, p.Connections), fmt.Sprintf("%d heartbeats", sum.Heartbeats))
	case s.Suite.Plan.Known:
		parts = append(parts, fmt.Sprintf("%d/%d open", sum.Open, p.Connections),
			s.received(sum.Received, p.Connections*p.NoopsPerConnection()), fmt.Sprintf("%d missed", sum.Missed()))
	case s.Suite.Target.Streams:
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
	}{{sum.Refused, "refused"}, {sum.Dropped, "dropped"}, {sum.Aside, cmp.Or(s.Suite.Page.Ended, "dropped by the script")}, {sum.Reconnected, "reconnects"}, {int(min(sum.Faults(), 1<<30)), "faulty"}} {
		if bad.count > 0 && s.Suite.Plan.Known {
			parts = append(parts, fmt.Sprintf("%d %s", bad.count, bad.name))
		}
	}
	if sum.Published > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d confirmed", sum.Confirmed, sum.Published))
	}
	if lateness.Count() > 0 && s.Suite.Plan.Known {
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
	if s.service.Counts != shard.CountsInterval || s.Plan.Published() {
		return fmt.Sprintf("%d %s", count, s.messages())
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
