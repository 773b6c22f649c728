package soak

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/metrics"
	"go.k6.io/k6/v2/output"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// A soakOutput writes the shard at the start, at each CheckpointInterval and at the end. Between these writes it
// samples this process, reports progress and keeps the control group open. If the folder or bucket is not writable, the
// first write fails before streams open.
type soakOutput struct {
	location     string // of the shard's folder or bucket; see store.Open
	name         string
	explicitName bool // see delivery
	log          logrus.FieldLogger
	recorder     *recorder
	delivery     *delivery
	runner       shard.Runner
	progress     *os.File // nil: progress is not reported
	news         progressNews

	environment map[string]string

	mu      sync.Mutex
	sums    *sums
	sampler *sampler
	seconds secondSamples // of a suite
	machine *machine.Watch
	sleep   *sleepClock

	probe   stallProbe
	stop    chan struct{}
	running sync.WaitGroup // of the goroutines that end after stop

	retryError atomic.Pointer[string] // error after which the delivery retries; "" after success
	finished   atomic.Bool            // the run has ended, and the final shard is being written
}

var _ output.WithStopWithTestError = (*soakOutput)(nil)

// newOutput returns the output `soak` of a runner. It also passes the planned iterations, the actions of the run, and
// whether all runners are on the publisher's machine to the recorder.
func newOutput(p output.Params, r *recorder) (output.Output, error) {
	index, err := runnerIndex(p.Environment["RUNNER"], p.ScriptOptions)
	if err != nil {
		return nil, err
	}
	if p.ConfigArgument == "" {
		return nil, errors.New("--out soak: the location of the shard is missing; pass --out soak=FOLDER, FOLDER/NAME.json.gz or s3://BUCKET/PREFIX")
	}
	source, err := plan.SourceOf(func(name string) string { return p.Environment[name] })
	if err != nil {
		return nil, err
	}
	runPlan, base, document := r.planCopy(), source.Base(), source.Document()
	r.telemetry.setActions(document.Actions)
	r.sharesClock.Store(document.OneClock)
	o := &soakOutput{
		location: p.ConfigArgument, log: p.Logger, recorder: r, environment: p.Environment, sums: newSums(), sampler: newSampler(shard.BucketWidth), machine: machine.New(runPlan.LateLimit()),
		sleep: newSleepClock(machine.SuspendedFor), stop: make(chan struct{}),
	}
	host, _ := os.Hostname() // "" on an error; only displayed
	o.runner = shard.Runner{
		TestID: cmp.Or(base.TestID, p.Environment["TESTID"], runPlan.TestID), RunID: base.RunID, Process: shard.NewID(), Index: index, Segment: "0:1",
		Iterations: plannedIterations(p.ScriptOptions.Scenarios), K6Version: k6Version(),
		Host: host, PID: os.Getpid(), StartedUS: r.start.UnixMicro(), State: shard.Running, ReplacedStartUS: document.FirstStartUS,
	}
	r.planIterations(o.runner.Iterations)
	if suite := r.declaredSuite(); suite != nil {
		o.probe.waits = new(waits)
		o.sums.splitBy, o.sums.maxDelay, o.sums.wall = suite.SplitBy, o.probe.waits.maxDelay, r.wall
	}
	if s := p.ScriptOptions.ExecutionSegment; s != nil {
		o.runner.Segment = s.String()
	}
	if p.ScriptPath != nil {
		o.runner.Script = filepath.Base(p.ScriptPath.Path)
		if source, err := os.ReadFile(p.ScriptPath.Path); err == nil {
			sum := sha256.Sum256(source)
			o.runner.ScriptHash = hex.EncodeToString(sum[:])
		}
	}
	o.name = shard.FileName(o.runner)
	if parent, last := store.Split(o.location); shard.IsFile(last) {
		o.location, o.name, o.explicitName = parent, last, true
	}
	if o.progress, err = inheritedFile(p.Environment, "PROGRESS_FD"); err != nil {
		return nil, err
	}
	r.gate, err = newStartGate(p.Environment)
	return o, err
}

// inheritedFile returns the file with the descriptor in a variable; nil if the variable is not set.
func inheritedFile(env map[string]string, variable string) (*os.File, error) {
	v := env[variable]
	if v == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(v)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s must be an open file descriptor above 2, got %q", variable, v)
	}
	return os.NewFile(uintptr(fd), variable), nil
}

func k6Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "go.k6.io/k6/v2" {
				return d.Version
			}
		}
	}
	return ""
}

func (o *soakOutput) Description() string { return "soak (" + store.Join(o.location, o.name) + ")" }

// Start writes the first checkpoint, opens the control group, and starts the goroutines of the output.
func (o *soakOutput) Start() error {
	destination, err := store.Create(context.Background(), o.location)
	if err != nil {
		return err
	}
	o.delivery = &delivery{
		store: destination, name: o.name, explicitName: o.explicitName, log: o.log, timeout: finalTimeout, localFolders: []string{".", os.TempDir()},
		localName: cmp.Or(o.runner.TestID, "soak") + "-" + o.name, onRetry: o.reportRetry, mayReplace: o.mayReplaceCheckpoint,
	}
	o.machine.Sample(o.recorder.wall(time.Now()))
	if err := o.delivery.deliverInitial(o.shard()); err != nil {
		return errors.Join(err, destination.Close())
	}
	o.sampleSecond()
	if err := o.recorder.openControl(o.environment); err != nil {
		return errors.Join(err, destination.Close())
	}
	go o.probe.run(o.stop)
	o.running.Go(o.tick)
	p := o.recorder.planCopy()
	p.Seconds += int(o.runner.StartDelay().Seconds())
	if p.IsShort() {
		o.running.Go(o.samplePoints)
	}
	return nil
}

// reportRetry reports the error after which the delivery retries, or "" after success: in the next line of progress, or
// at once if the run has ended.
func (o *soakOutput) reportRetry(message string) {
	o.retryError.Store(&message)
	if o.finished.Load() && o.progress != nil {
		o.report()
	}
}

// AddMetricSamples adds the samples of k6 to the sums. That is fast, so there is no queue.
func (o *soakOutput) AddMetricSamples(samples []metrics.SampleContainer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sums.add(samples)
}

// Stop stops the output of a run that ended without an error.
func (o *soakOutput) Stop() error { return o.StopWithTestError(nil) }

// StopWithTestError stops the recorder and the control group, and writes the final shard with all data and the error of
// the run. Then it reports progress for the last time. After a suspension it may end the process instead; see
// endIfSuspended.
func (o *soakOutput) StopWithTestError(runErr error) error {
	// k6 no longer handles signals. An interrupt would end the process before the shard is stored.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	close(o.stop)
	o.running.Wait()
	o.endIfSuspended()
	o.recorder.finish()
	o.recorder.control.close()
	o.runner.State, o.runner.Error = endState(runErr)
	o.finished.Store(true)
	if o.runner.State == shard.Interrupted {
		o.delivery.timeout = min(o.delivery.timeout, interruptTimeout)
	}
	err := o.delivery.deliverFinal(o.shard())
	if err != nil {
		o.log.Error(err)
	}
	err = errors.Join(err, o.delivery.store.Close())
	if o.progress != nil {
		o.report()
		err = errors.Join(err, o.progress.Close())
	}
	return err
}

// endState returns the state of a run that ended with err, and the text of err. Thresholds that failed at the end are
// not an error.
func endState(err error) (shard.RunState, string) {
	if err == nil {
		return shard.Finished, ""
	}
	var abort errext.HasAbortReason
	if errors.As(err, &abort) {
		switch abort.AbortReason() {
		case errext.AbortedByThresholdsAfterTestEnd:
			return shard.Finished, ""
		case errext.AbortedByUser:
			return shard.Interrupted, err.Error()
		}
	}
	return shard.Aborted, err.Error()
}

// tick takes the samples, reports progress and writes checkpoints until stop is closed. Each second it also checks
// whether the machine was suspended.
func (o *soakOutput) tick() {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	checkpoint := time.NewTimer(shard.CheckpointInterval(0))
	defer checkpoint.Stop()
	for {
		select {
		case <-o.stop:
			o.sampleSecond()
			o.sampleBucket()
			return
		case now := <-second.C:
			o.endIfSuspended()
			o.sampleSecond()
			if o.recorder.isBucketOver(now) {
				o.sampleBucket()
			}
			if o.progress != nil {
				o.report()
			}
		case <-checkpoint.C:
			o.delivery.deliverCheckpoint(o.shard())
			checkpoint.Reset(shard.CheckpointInterval(time.Since(o.recorder.start)))
		}
	}
}

// sampleSecond takes the per-second samples of a suite. A soak has none: it may last for hours, and has buckets.
func (o *soakOutput) sampleSecond() {
	if o.recorder.declaredSuite() == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seconds.add(o.recorder.wall(time.Now()), o.sampler, o.probe.takeLongest(), o.probe.waits.takeLongest())
}

func (o *soakOutput) sampleBucket() {
	o.mu.Lock()
	o.machine.Sample(o.recorder.wall(time.Now()))
	s := o.sampler.sample()
	stall := max(o.probe.takeLongest(), o.seconds.takeStall())
	s.StallMS = stall.Milliseconds()
	o.runner.StallMaxUS = max(o.runner.StallMaxUS, stall.Microseconds())
	o.runner.GCPauseMaxUS = max(o.runner.GCPauseMaxUS, s.GCPauseUS)
	o.mu.Unlock()
	o.recorder.endBucket(time.Now(), s, o.recorder.control)
}

// shard returns the shard with all data so far, and counts it as a checkpoint of the runner.
func (o *soakOutput) shard() *shard.Shard {
	s := &shard.Shard{Schema: shard.Schema}
	o.recorder.fill(s)
	o.mu.Lock()
	o.sums.fill(s)
	s.Seconds, s.Machine = slices.Clone(o.seconds.list), o.machine.Record()
	o.runner.RSSMax, o.runner.CPUSeconds = o.sampler.rssMax, o.sampler.lastUsage.cpu
	o.runner.RunDelaySeconds = o.sampler.lastUsage.runDelay.Seconds()
	o.mu.Unlock()
	o.runner.Checkpoints++
	o.runner.EndedUS = o.recorder.wall(time.Now()).UnixMicro()
	s.Runner = o.runner
	return s
}

// fill copies all data into a shard. The shard shares the ledgers, which continue to count.
func (r *recorder) fill(s *shard.Shard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Plan, s.Suite = r.plan, r.suite
	s.Responses = r.responses.copy()
	if r.hasPlan || r.service != nil && r.service.Finite != nil { // otherwise the script opens no streams
		s.Service = shard.ServiceOf(r.service)
	}
	s.Reach, s.Published, s.Control = r.reach.Copy(), r.publishedMessages(), r.control.result()
	r.tally.fill(s)
	s.Ledgers = r.ledgers[:len(r.ledgers):len(r.ledgers)]
	for _, t := range r.topics {
		s.AddFeed(t.log)
	}
}

// report writes one line of progress. The line is lost if no process reads it. Another soak process may attach and read
// the next one.
func (o *soakOutput) report() {
	p := o.news.report(o.recorder)
	if message := o.retryError.Load(); message != nil {
		p.Trouble = *message
	}
	o.mu.Lock()
	o.sums.progress(&p)
	o.mu.Unlock()
	o.recorder.finiteResponses().progress(&p)
	if line, err := json.Marshal(p); err == nil {
		_, _ = o.progress.Write(append(line, '\n')) // the run does not depend on this line
	}
}

// runnerIndex returns the number of this runner, from 1: the variable RUNNER if it is set, otherwise the position of
// its segment in the sequence. The k6-operator sets the same environment for all runners, but a different segment for
// each.
func runnerIndex(variable string, options lib.Options) (int, error) {
	if variable != "" {
		n, err := strconv.Atoi(variable)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("RUNNER must be the number of this runner, from 1, got %q", variable)
		}
		return n, nil
	}
	if options.ExecutionSegment == nil || options.ExecutionSegmentSequence == nil {
		return 1, nil
	}
	for i, s := range *options.ExecutionSegmentSequence {
		if s.Equal(options.ExecutionSegment) {
			return i + 1, nil
		}
	}
	return 1, nil
}

func plannedIterations(scenarios lib.ScenarioConfigs) (sum int64) {
	for _, s := range scenarios {
		switch c := s.(type) {
		case executor.SharedIterationsConfig:
			sum += c.Iterations.Int64
		case executor.PerVUIterationsConfig:
			sum += c.VUs.Int64 * c.Iterations.Int64
		}
	}
	return sum
}
