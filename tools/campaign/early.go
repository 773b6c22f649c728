package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/suspension"
)

// An earlySpec describes an early end of soak, or of the second of two runners, or an interruption of that runner.
type earlySpec struct {
	Attach   bool           // soak is killed, and another soak attaches to its runners
	Runner   syscall.Signal // signal sent to the second runner; 0: none
	Times    int            // number of replacements of the second runner
	Overlap  bool           // the second runner still runs when it is replaced
	StopTime time.Duration  // how long the second runner is stopped; 0: not stopped
	Suspend  bool           // for StopTime, the runner's machine is suspended; otherwise only its k6 process is stopped
}

// earlyKinds are drawn only if -kind is early or the name of one of them. In three of four runs, the service loses a
// noop of some clients. The loss may happen while no runner observes these clients.
var earlyKinds = []kind{
	{"early", "drained and replaced", endEarly(earlySpec{Runner: syscall.SIGTERM, Times: 1})},
	{"early", "killed and replaced", endEarly(earlySpec{Runner: syscall.SIGKILL, Times: 1})},
	{"early", "drained and replaced twice", endEarly(earlySpec{Runner: syscall.SIGTERM, Times: 2})},
	{"early", "replaced while it runs", endEarly(earlySpec{Overlap: true, Times: 1})},
	{"early", "soak killed, attached", endEarly(earlySpec{Attach: true})},
	{"early", "soak killed, runner drained, attached", endEarly(earlySpec{Attach: true, Runner: syscall.SIGTERM})},
	{"early", "soak and runner killed, attached", endEarly(earlySpec{Attach: true, Runner: syscall.SIGKILL})},
	{"early", "runner stopped, continued", stopKind(false)},
	{"early", "machine suspended", stopKind(true)},
}

func drawEarly(seed uint64, only string) *scenario {
	r := rand.New(rand.NewPCG(seed, 37))
	sc := &scenario{Seed: seed, Plan: drawPlan(r), Service: drawService(r)}
	sc.prepareOne(r, withName(only, earlyKinds)...)
	sc.setInterval()
	return sc
}

func endEarly(spec earlySpec) setup {
	return func(r *rand.Rand, sc *scenario) {
		sc.Early = &spec
		sc.Plan.Connections, sc.Plan.Runners, sc.Plan.Interval, sc.Plan.Seconds = 10+r.IntN(31), 2, oneOf(r, .5, 1), 40
		if spec.Runner == syscall.SIGKILL || spec.Suspend {
			sc.Plan.Seconds = 70
		}
		if spec.Times > 1 {
			sc.Plan.Seconds = 55
		}
		sc.Service.Schedule.Jitter, sc.Service.EndsLate = 0, false
		if numberNoops(r, sc); r.IntN(3) == 0 {
			sc.Service.IDs = fakeservice.IDsNone
		}
		if r.IntN(4) > 0 {
			sc.strike(r, fakeservice.ActLose, 1, 3+r.IntN(int(float64(sc.Plan.Seconds-lead-6)/sc.Plan.Interval)))
		}
	}
}

func stopKind(suspend bool) setup {
	return func(r *rand.Rand, sc *scenario) {
		endEarly(earlySpec{Suspend: suspend, StopTime: time.Duration(2000+r.IntN(10_000)) * time.Millisecond})(r, sc)
	}
}

// An ending records that a runner ended, or continued after a suspension.
type ending struct {
	observedUntil time.Time // time up to which the shards that the runner had written cover the run
	at            time.Time // when the runner ended or continued
}

func (r *run) soakEarly(ctx context.Context) (*verdict.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Plan.Seconds)*time.Second+maxOverrun)
	defer cancel()
	out := filepath.Join(r.dir, "out")
	flags := append(append([]string{"run"}, r.Plan.flags()...), "--out", out, "--testid", testid, "--backend-url", r.url, "--min-coverage", "20")
	last := []string{"merge", filepath.Join(out, testid)}
	switch {
	case r.Early.StopTime > 0:
		if err := r.stopRunner(ctx, flags); err != nil {
			return nil, err
		}
	case r.Early.Attach:
		last = []string{"attach", testid, "--out", out}
		soak := r.command(ctx, flags...)
		if err := soak.Start(); err != nil {
			return nil, err
		}
		if err := r.attackRunner(ctx, soak); err != nil {
			return nil, err
		}
	default:
		if err := r.replaceRunner(ctx, flags); err != nil {
			return nil, err
		}
	}
	text, err := r.exec(ctx, last...)
	v, err := verdictOf(err, filepath.Join(out, testid), text)
	if err == nil {
		err = r.checkStop(v)
	}
	return v, err
}

// checkStop returns an error if the verdict does not report the stop or the suspension of the second runner.
func (r *run) checkStop(v *verdict.Verdict) error {
	stall := time.Duration(v.Generator.StallMaxMS * float64(time.Millisecond))
	switch {
	case r.Early.Suspend && !strings.Contains(strings.Join(v.Warnings, "\n"), "its machine was suspended for"):
		return fmt.Errorf("no warning reports the suspension: %q", v.Warnings)
	case r.Early.StopTime > 0 && !r.Early.Suspend && stall < r.Early.StopTime-time.Second:
		return fmt.Errorf("a runner was stopped for %s, but the longest stall in the verdict is %s", r.Early.StopTime, stall)
	}
	return nil
}

// attackRunner kills soak, and then sends the signal of the scenario, if any, to the second runner of soak.
func (r *run) attackRunner(ctx context.Context, soak *exec.Cmd) error {
	var pids []int
	if !await(ctx, func() bool { pids = runners(soak.Process.Pid); return len(pids) == r.Plan.Runners && r.allOpened(1) }) {
		return errors.New("the streams did not open")
	}
	if err := soak.Process.Kill(); err != nil {
		return err
	}
	_ = soak.Wait()
	if r.Early.Runner == 0 {
		pause(ctx, 3*time.Second)
		return nil
	}
	observedUntil := r.awaitObserved(ctx, r.Early.Runner)
	if err := syscall.Kill(pids[1], r.Early.Runner); err != nil {
		return err
	}
	await(ctx, func() bool { return hasEnded(pids[1]) })
	r.addEnding(observedUntil)
	return nil
}

// replaceRunner starts two runners and replaces the second one Early.Times times. Unless Early.Overlap is set, the
// second runner ends before its replacement starts.
func (r *run) replaceRunner(ctx context.Context, flags []string) error {
	first := r.command(ctx, append(flags, "--runner", "1/2")...)
	second := r.command(ctx, append(flags, "--runner", "2/2")...)
	if err := errors.Join(first.Start(), second.Start()); err != nil {
		return err
	}
	for n := range r.Early.Times {
		if !await(ctx, func() bool { return r.allOpened(n + 1) }) {
			return errors.New("the streams did not open, or no client reconnected to the service")
		}
		replacedRunner := second
		observedUntil := r.awaitObserved(ctx, r.Early.Runner)
		if !r.Early.Overlap {
			_ = second.Process.Signal(r.Early.Runner)
			_ = second.Wait()
			r.addEnding(observedUntil)
		}
		second = r.command(ctx, append(flags, "--runner", "2/2", "--continue")...)
		if err := second.Start(); err != nil {
			return err
		}
		if r.Early.Overlap {
			_ = replacedRunner.Wait()
		}
	}
	_, _ = first.Wait(), second.Wait()
	return nil
}

func (r *run) stopRunner(ctx context.Context, flags []string) error {
	first := r.command(ctx, append(flags, "--runner", "1/2")...)
	second := r.command(ctx, append(flags, "--runner", "2/2")...)
	clock, err := suspension.Start(second)
	if err := errors.Join(err, first.Start()); err != nil {
		return err
	}
	if !await(ctx, func() bool { return r.allOpened(1) }) {
		return errors.New("the streams did not open")
	}
	if r.Early.Suspend {
		err = r.suspendRunner(ctx, second.Process.Pid, clock)
	} else {
		pause(ctx, 6*time.Second) // a runner measures its stalls every 5 s
		suspension.Stop(ctx, runners(second.Process.Pid), r.Early.StopTime, func() {})
	}
	_, _ = first.Wait(), second.Wait()
	return err
}

// suspendRunner suspends the machine of the second runner after a checkpoint, and waits until a client has reconnected.
func (r *run) suspendRunner(ctx context.Context, soak int, clock *suspension.Clock) error {
	observedUntil := r.awaitObserved(ctx, syscall.SIGKILL)
	clock.Suspend(ctx, append(runners(soak), soak), r.Early.StopTime)
	if !await(ctx, func() bool { return r.allOpened(2) }) {
		return errors.New("no client reconnected")
	}
	r.addEnding(observedUntil)
	return nil
}

// allOpened reports whether all clients have had a stream, and at least one client has had the given number of streams.
func (r *run) allOpened(streams int) bool {
	r.service.Mu.Lock()
	defer r.service.Mu.Unlock()
	highest := 0
	for _, d := range r.service.Clients {
		highest = max(highest, len(d.Spans))
		if len(d.Spans) == 0 {
			return false
		}
	}
	return len(r.service.Clients) == r.Plan.Connections && highest >= streams
}

// awaitObserved waits until the second runner may receive the signal. It returns the time up to which the shard of this
// runner covers the run. For SIGKILL this is the time of the last checkpoint, otherwise the current time.
func (r *run) awaitObserved(ctx context.Context, signal syscall.Signal) (observedUntil time.Time) {
	start := time.Now()
	if signal != syscall.SIGKILL {
		pause(ctx, 6*time.Second)
		return time.Now()
	}
	await(ctx, func() bool {
		shards, _ := filepath.Glob(filepath.Join(r.dir, "out", testid, "shards", "runner-2*.json.gz"))
		for _, path := range shards {
			if info, err := os.Stat(path); err == nil && info.ModTime().Sub(start) > 10*time.Second {
				observedUntil = info.ModTime()
			}
		}
		return !observedUntil.IsZero()
	})
	pause(ctx, 4*time.Second)
	return observedUntil
}

func (r *run) addEnding(observedUntil time.Time) {
	r.endings = append(r.endings, ending{observedUntil, time.Now()})
}

// hasEnded reports whether a process has ended, even if its parent has not waited for it yet.
func hasEnded(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// expectEarly returns the expected verdict. It includes the losses that a runner observed, and the share of the time in
// which clients were observed.
func (r *run) expectEarly() *verdictExpectation {
	if r.Early.Overlap {
		return expectInvalid(verdict.CheckComplete)
	}
	r.service.Mu.Lock()
	defer r.service.Mu.Unlock()
	e := expectPass()
	var observedTime time.Duration
	for _, d := range r.service.Clients {
		spans := r.observedSpans(d)
		for _, s := range spans {
			observedTime += s.To.Sub(s.From)
		}
		for i := range d.Noops {
			n := &d.Noops[i]
			if !n.Lost(d.CutAt) || n.Disconnected {
				continue
			}
			lost := r.lossObserved(spans, n.Due)
			e.Counts.add("missed", lost)
			if lost.Max > 0 {
				e.Clients[d.ID] = lost.Min > 0
			}
		}
	}
	switch missed := e.Counts["missed"]; {
	case missed.Min > 0:
		e.Outcomes = fails
	case missed.Max > 0:
		e.Outcomes = []verdict.Outcome{verdict.Pass, verdict.Fail}
	}
	share := int(1000 * observedTime.Seconds() / (r.Plan.hold().Seconds() * float64(r.Plan.Connections)))
	const slack = 60 // per mille
	e.Counts["coverage"] = span{share - slack, share + slack}
	if len(r.endings) == 0 {
		e.Counts["coverage"] = exactCount(1000)
	}
	return e
}

// observedSpans returns the spans in which a runner observed the streams of a client. If the runner ended early or was
// suspended, the spans of its open streams end at observedUntil.
func (r *run) observedSpans(d *fakeservice.NoopClient) (out []fakeservice.OpenSpan) {
	for _, s := range d.Spans {
		if s.To.IsZero() {
			s.To = d.LastExpected()
		}
		for _, end := range r.endings {
			if s.From.Before(end.observedUntil) && s.To.After(end.observedUntil) && s.To.Before(end.at.Add(time.Second)) {
				s.To = end.observedUntil
			}
		}
		out = append(out, s)
	}
	return out
}

// lossObserved returns 1 for a loss while a runner observed the client, and 0 for others. Near the ends of a span, it
// allows both.
func (r *run) lossObserved(spans []fakeservice.OpenSpan, due time.Time) (lost span) {
	const slack = 300 * time.Millisecond
	margin := 2*r.Service.Schedule.Interval + slack // allows for the noops before and after the loss
	for _, s := range spans {
		lost.Min += btoi(due.After(s.From.Add(margin)) && due.Before(s.To.Add(-margin)))
		lost.Max += btoi(due.After(s.From.Add(-slack)) && due.Before(s.To.Add(slack)))
	}
	return span{min(lost.Min, 1), min(lost.Max, 1)}
}
