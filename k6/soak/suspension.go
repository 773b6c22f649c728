package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/proxy"
)

// How long a runner waits for the network after a suspension, before it connects its clients again.
const (
	networkWithin = time.Minute
	networkRetry  = 500 * time.Millisecond
)

// A sleepClock measures for how long the machine was suspended since the runner started.
type sleepClock struct {
	read  func() (time.Duration, bool) // machine.SuspendedFor
	start time.Duration
}

func newSleepClock(read func() (time.Duration, bool)) *sleepClock {
	start, _ := read()
	return &sleepClock{read, start}
}

// slept returns for how long the machine was suspended; 0 if it was not, or if the system does not show it.
func (c *sleepClock) slept() time.Duration {
	const shortest = machine.SuspendedResolution
	if now, ok := c.read(); ok && now-c.start >= shortest {
		return now - c.start
	}
	return 0
}

// current reports whether a checkpoint of this moment may replace the last one, which is from before any suspension.
func (o *outputSoak) current() bool { return o.sleep.slept() == 0 || !o.replaceable() }

// replaceable reports whether another process can run the clients of this runner for the rest of the run, as `--continue` does.
func (o *outputSoak) replaceable() bool {
	planned := o.recorder.thePlan()
	return o.environment[plan.DocumentVariable] != "" && !planned.Cuts() && o.recorder.declaredSuite() == nil &&
		!o.explicit && !(planned.Published() && o.runner.Index == 1)
}

// endIfSuspended ends a runner whose machine was suspended, as if it had been killed: its last checkpoint is from before the
// suspension. A new process replaces it, if the run is not over. Runners that cannot be replaced continue; their runs are invalid.
func (o *outputSoak) endIfSuspended() {
	slept := o.sleep.slept()
	if slept == 0 || !o.replaceable() {
		return
	}
	o.log.Warnf("The machine was suspended for %s. This runner ends at its last checkpoint, and its clients connect again.", format.Duration(slept))
	o.awaitNetwork(networkWithin)
	err := o.startAgain(time.Now())
	o.log.Errorf("its machine was suspended for %s: %s", format.Duration(slept), err)
	os.Exit(int(exitcodes.ExternalAbort))
}

// awaitNetwork waits until the target accepts a connection: a laptop that wakes up has no network yet. A target that stays unreachable
// is left to the next process to report.
func (o *outputSoak) awaitNetwork(limit time.Duration) {
	planned := o.recorder.thePlan()
	target, err := url.Parse(planned.BackendOf(o.runner.Index))
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

// startAgain replaces this process by one that runs its clients for the rest of the run. It returns only with an error.
func (o *outputSoak) startAgain(now time.Time) error {
	select {
	case <-o.stop:
		return errors.New("the run was stopped")
	default:
	}
	left := o.runner.SecondsLeft(o.recorder.thePlan().Seconds, now)
	if left <= plan.DisconnectLead {
		return errors.New("the run was over when it woke up")
	}
	source, err := plan.SourceOf(func(name string) string { return o.environment[name] })
	if err != nil {
		return err
	}
	program, err := os.Executable()
	for name, value := range source.Shortened(left).Variables() {
		err = errors.Join(err, os.Setenv(name, value))
	}
	err = errors.Join(err, os.Setenv(plan.StartVariable, strconv.FormatInt(o.runner.FirstStartUS(), 10)))
	if err == nil {
		// The k6-operator resumes a paused runner only once.
		args := slices.DeleteFunc(slices.Clone(os.Args), func(arg string) bool { return arg == "--paused" })
		err = syscall.Exec(program, args, os.Environ()) // #nosec G204 G702 -- its own program and arguments, without a shell
	}
	return fmt.Errorf("continue the runner: %w", err)
}
