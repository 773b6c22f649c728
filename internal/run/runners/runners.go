// Package runners runs the k6 processes of a run on this machine and reads their reports while they run.
package runners

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A Config has the settings of the runners.
type Config struct {
	plan.Document
	K6      string // path of the binary
	Script  string
	Token   string
	Index   int               // index of the only runner to start; 0: all runners of the plan
	Dir     string            // folder for logs, such as results/TESTID
	Shards  string            // location of the shards, see package store; "": Dir/shards
	CPUs    process.CPUList   // CPUs of the runners; empty: all
	Env     map[string]string // further variables
	Survive bool              // the runners continue when soak is killed, and another soak process can attach to them
	// OnRetry, if not nil, is called when a runner starts to retry an operation, when the cause changes, and when a
	// silent runner is killed. It also gets the last error in the log of a runner that ended with exit code 0.
	OnRetry func(sentence string)
	// OnReport, if not nil, is called with each report of a runner, and with nil when the runner has ended.
	OnReport func(index int, p *shard.Progress)
}

// A Group has the runners of one round on this machine.
type Group struct {
	runners     []*runner
	interrupted bool // Wait has interrupted the runners
}

type runner struct {
	*process.Process
	index    int
	logPath  string
	onRetry  func(string)
	onReport func(int, *shard.Progress)
	readers  sync.WaitGroup
	silence  atomic.Int64 // number of report intervals since the last report
	isKilled atomic.Bool  // it was killed because it sent no report
}

// reportInterval is the time between two reports of a runner. Tests shorten it.
var reportInterval = time.Second

// A runner that sends no report for maxSilence intervals is stopped (SIGSTOP) or hangs. The longest silence of a
// working runner is the delivery of its final shard, which takes up to 3 minutes, or 15 s after an interrupt.
const (
	maxSilence            = 600
	maxSilenceInterrupted = 120
)

// killIfSilent kills a runner that sent no report for limit intervals. It counts intervals in which soak itself ran, so
// a suspension of the machine does not count.
func (r *runner) killIfSilent(limit int64) {
	select {
	case <-r.Done():
		return
	default:
	}
	if r.silence.Add(1) < limit || r.isKilled.Swap(true) {
		return
	}
	if r.onRetry != nil {
		r.onRetry(fmt.Sprintf("runner %d: no report for %s, so soak kills the runner and keeps its last checkpoint", r.index, format.Duration(time.Duration(limit)*reportInterval)))
	}
	r.kill()
}

func (r *runner) kill() {
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	r.Stop(expired, syscall.SIGKILL, time.Second)
}

// Segment returns the execution segment of one of n runners, in k6's notation. index counts from 1.
func Segment(index, n int) string { return fraction(index-1, n) + ":" + fraction(index, n) }

// Sequence returns the execution segment sequence of n runners, in k6's notation.
func Sequence(n int) string {
	bounds := make([]string, 0, n+1)
	for i := range n + 1 {
		bounds = append(bounds, fraction(i, n))
	}
	return strings.Join(bounds, ",")
}

func fraction(i, n int) string {
	switch i {
	case 0:
		return "0"
	case n:
		return "1"
	}
	return strconv.Itoa(i) + "/" + strconv.Itoa(n)
}

// Start starts all runners of the plan, or the one at Index. After an error none of them runs.
func Start(c Config) (*Group, error) {
	g := &Group{}
	gate, err := c.openGate()
	if err != nil {
		return nil, err
	}
	defer gate.close()
	for i := 1; i <= c.Plan.Runners; i++ {
		if c.Index > 0 && c.Index != i {
			continue
		}
		r, err := startRunner(c, i, gate)
		if err != nil {
			g.Kill()
			return nil, err
		}
		g.runners = append(g.runners, r)
	}
	return g, nil
}

// A gate has the reading and the writing end of a pipe that several runners inherit. A runner that is ready for the
// phases of its suite closes its writing end. It then reads until EOF, which it receives when all runners are ready.
type gate []*os.File

// openGate returns a nil gate if only one runner starts here.
func (c Config) openGate() (gate, error) {
	if c.Index > 0 || c.Plan.Runners < 2 {
		return nil, nil
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the runners: %w", err)
	}
	return gate{reader, writer}, nil
}

// variables returns the environment variables with the descriptors of the gate. Descriptor 3 is for the reports.
func (g gate) variables() []string {
	if g == nil {
		return nil
	}
	return []string{"START_FD=4", "READY_FD=5"}
}

func (g gate) close() {
	for _, f := range g {
		_ = f.Close()
	}
}

func startRunner(c Config, index int, gate gate) (*runner, error) {
	reader, writer, orphanSignal, err := c.openPipes(index)
	if err != nil {
		return nil, fmt.Errorf("start runner %d: %w", index, err)
	}
	defer writer.Close()
	r := &runner{index: index, onRetry: c.OnRetry, onReport: c.OnReport, logPath: logPath(c.Dir, index)}
	r.Process, err = process.Start(process.Spec{
		Name: fmt.Sprintf("runner %d", index), Path: c.K6, Log: r.logPath, Extra: append([]*os.File{writer}, gate...),
		Args: arguments(c, index), Env: append(environment(c, index), gate.variables()...), OrphanSignal: orphanSignal, CPUs: c.CPUs,
	})
	if err != nil {
		_ = reader.Close()
		if _, statErr := os.Stat(c.K6); statErr != nil {
			err = fmt.Errorf("%w; build k6 with `make build`", err)
		}
		return nil, err
	}
	r.readers.Add(1)
	go r.readReports(reader)
	return r, nil
}

func logPath(dir string, index int) string {
	return filepath.Join(dir, fmt.Sprintf("k6-runner-%d.log", index))
}

func arguments(c Config, index int) []string {
	args := []string{
		"run", "--quiet", "--no-color", "--out", "soak=" + cmp.Or(c.Shards, filepath.Join(c.Dir, "shards")),
		"--execution-segment", Segment(index, c.Plan.Runners),
		"--execution-segment-sequence", Sequence(c.Plan.Runners),
	}
	if HasRemoteWrite() {
		args = append(append(args, RemoteWriteArgs(c.Plan.TestID)...), "--tag", "runner="+strconv.Itoa(index))
	}
	return append(args, c.Script)
}

// environment returns the environment of a runner. It includes the plan, because ps shows arguments to every user.
func environment(c Config, index int) []string {
	d := c.Document
	d.Plan.BackendURL = d.Plan.BackendOf(index)
	env := append(inheritedEnvironment(), "PROGRESS_FD=3", "RUNNER="+strconv.Itoa(index), "BACKEND_TOKEN="+c.Token)
	if HasRemoteWrite() && os.Getenv(remoteWriteStats) == "" {
		env = append(env, remoteWriteStats+"="+trendStats)
	}
	return withVariables(env, d.Variables(), c.Env)
}

func withVariables(env []string, sets ...map[string]string) []string {
	for _, values := range sets {
		for name, value := range values {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// readReports passes the reports of the runner to onReport until the runner closes the pipe. Then it passes nil.
func (r *runner) readReports(f *os.File) {
	defer r.readers.Done()
	defer f.Close()
	if r.onReport != nil {
		defer r.onReport(r.index, nil)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	problem := ""
	for lines.Scan() {
		r.silence.Store(0)
		var p shard.Progress
		if json.Unmarshal(lines.Bytes(), &p) != nil {
			continue
		}
		if r.onReport != nil {
			r.onReport(r.index, &p)
		}
		if r.onRetry != nil && p.Trouble != "" && p.Trouble != problem {
			r.onRetry(fmt.Sprintf("runner %d: %s", r.index, p.Trouble))
		}
		problem = p.Trouble
	}
}

// Started returns a closed channel, because Start has started all processes.
func (g *Group) Started() <-chan struct{} {
	started := make(chan struct{})
	close(started)
	return started
}

// Wait waits until all runners have ended. It interrupts them when graceful ends: each closes its streams and writes
// its shard. It kills them when force ends, and kills a runner that sends no reports. If a runner ended with exit code 0
// but logged errors, Wait passes the last one to OnRetry.
func (g *Group) Wait(graceful, force context.Context) error {
	stop := context.AfterFunc(graceful, func() {
		for _, r := range g.runners {
			r.silence.Store(0)
			r.Signal(syscall.SIGINT)
		}
	})
	defer stop()
	stopForce := context.AfterFunc(force, g.Kill)
	defer stopForce()
	for _, r := range g.runners {
		g.await(r, graceful)
		r.readers.Wait()
		if last, ok := lastError(r.logPath); ok && r.onRetry != nil && r.ExitCode() == 0 {
			r.onRetry(fmt.Sprintf("runner %d: %s", r.index, last)) // such as a shard that was not delivered
		}
	}
	g.interrupted = graceful.Err() != nil
	return nil
}

// await waits until a runner has ended. Meanwhile it kills each runner of the group that sends no reports.
func (g *Group) await(r *runner, graceful context.Context) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.Done():
			return
		case <-tick.C:
			limit := int64(maxSilence)
			if graceful.Err() != nil {
				limit = maxSilenceInterrupted
			}
			for _, r := range g.runners {
				r.killIfSilent(limit)
			}
		}
	}
}

// Kill kills all runners, and waits for their end.
func (g *Group) Kill() {
	for _, r := range g.runners {
		r.kill()
	}
}
