package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"syscall"
	"time"

	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/proxy"
)

// Times of the wait for the network after a suspension, before the clients of a runner reconnect.
const (
	networkTimeout = time.Minute            // maximum wait
	networkRetry   = 500 * time.Millisecond // between two attempts
)

// A sleepClock measures how long the machine has been suspended since the first successful reading.
type sleepClock struct {
	read       func() (time.Duration, bool) // machine.SuspendedFor
	start      time.Duration                // the first reading
	hasReading bool                         // a reading has succeeded
}

func newSleepClock(read func() (time.Duration, bool)) *sleepClock {
	c := &sleepClock{read: read}
	c.start, c.hasReading = read()
	return c
}

func (c *sleepClock) duration() time.Duration {
	now, ok := c.read()
	if ok && !c.hasReading {
		c.start, c.hasReading = now, true
	}
	if ok && now-c.start >= machine.SuspendedResolution {
		return now - c.start
	}
	return 0
}

// mayReplaceCheckpoint reports whether a new checkpoint may replace the previous one. After a suspension it returns
// false if another process will continue from the previous checkpoint.
func (o *soakOutput) mayReplaceCheckpoint() bool {
	return o.sleep.duration() == 0 || !o.isReplaceable()
}

// isReplaceable reports whether another process can replace this runner for the rest of the run, as with `--continue`.
func (o *soakOutput) isReplaceable() bool {
	runPlan := o.recorder.planCopy()
	return o.environment[plan.DocumentVariable] != "" && !runPlan.HasCuts() && o.recorder.declaredSuite() == nil &&
		!o.explicitName && !(runPlan.Published() && o.runner.Index == 1)
}

// endIfSuspended ends the runner after a suspension of its machine. As after a kill, the runner writes no final shard.
// Its last checkpoint is from before the suspension. A new process replaces the runner, unless the run is over. Runners
// that cannot be replaced continue, and their runs are invalid.
func (o *soakOutput) endIfSuspended() {
	duration := o.sleep.duration()
	if duration == 0 || !o.isReplaceable() {
		return
	}
	o.log.Warnf("The machine was suspended for %s. This runner ends at its last checkpoint, and its clients reconnect.", format.Duration(duration))
	o.awaitNetwork(networkTimeout)
	err := o.restart(time.Now())
	o.log.Errorf("the machine was suspended for %s: %s", format.Duration(duration), err)
	os.Exit(int(exitcodes.ExternalAbort))
}

// awaitNetwork waits until the target, or the proxy to it, accepts a connection, because a laptop that wakes up has no
// network yet. It stops waiting after limit, and at the end of the run. The next process reports a target that stays
// unreachable.
func (o *soakOutput) awaitNetwork(limit time.Duration) {
	runPlan := o.recorder.planCopy()
	target, err := url.Parse(runPlan.BackendOf(o.runner.Index))
	if err != nil || target.Host == "" {
		return
	}
	route, err := proxy.FromEnvironmentTo(target.String())
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", route.Address(target))
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-o.stop:
			return
		case <-time.After(networkRetry):
		}
	}
}

// restart replaces this process with one that runs the clients for the rest of the run. It returns only on an error.
func (o *soakOutput) restart(now time.Time) error {
	select {
	case <-o.stop:
		return errors.New("the run was stopped")
	default:
	}
	remaining := o.runner.SecondsLeft(o.recorder.planCopy().Seconds, now)
	if remaining <= plan.DisconnectLead {
		return errors.New("the run was over when the machine woke up")
	}
	source, err := plan.SourceOf(func(name string) string { return o.environment[name] })
	if err != nil {
		return err
	}
	program, err := os.Executable()
	document := source.Document()
	document.Plan.Seconds, document.FirstStartUS = remaining, o.runner.FirstStartUS()
	for name, value := range document.Variables() {
		err = errors.Join(err, os.Setenv(name, value))
	}
	if err == nil {
		// The k6-operator resumes a paused runner only once.
		args := slices.DeleteFunc(slices.Clone(os.Args), func(arg string) bool { return arg == "--paused" })
		err = syscall.Exec(program, args, os.Environ()) // #nosec G204 G702 -- its own program and arguments, without a shell
	}
	return fmt.Errorf("continue the runner: %w", err)
}
