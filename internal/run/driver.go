package run

import (
	"context"
	"errors"
	"runtime"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A driver runs the runners of a session: all on this machine, one of them on this machine, or all on Kubernetes. The
// session calls check, prepare, start (once per round), targetState and judge in this order. It calls close at the end,
// also after an error of prepare or of a later step. prepare sets session.targets, dir and location.
type driver interface {
	// check returns an error for settings that this driver cannot run. It starts neither runners nor a target, and
	// creates no folder of the run.
	check(ctx context.Context) error
	// prepare creates the folder of the run, waits until the target answers, and checks that the shards of the runners
	// can be read. After an error, close stops everything that prepare started, but the folder stays.
	prepare(ctx context.Context) error
	start(ctx context.Context, r round) (roundRun, error)
	// openShards opens the location of shards at a URL that this machine can reach. The runners may need a different
	// URL.
	openShards(ctx context.Context, location string) (store.Store, error)
	// targetState returns the failures of the target since prepare, such as crashes, and sentences about the addresses
	// that no longer respond. These are faults of the service, not of the run.
	targetState(ctx context.Context) (failures []verdict.TargetFailure, unreachable []string)
	// judge makes the verdict from the files in the folder of the run. A part of a run only delivers its files and
	// prints its counts.
	judge(graceful, force context.Context) (verdict.Outcome, error)
	// close stops all processes that prepare and start have started: gracefully until force ends, then at once.
	close(force context.Context)
}

// A round is one start of all runners.
type round struct {
	dir    results.Dir // for logs and shards
	shards string      // location that the runners write their shards to
	// settings has the settings of a further round, by name. They replace the settings of the script.
	settings map[string]string
}

// A roundRun controls the runners of a round, from their start to the end of the last one.
type roundRun interface {
	// Started returns a channel that is closed when all runners have started.
	Started() <-chan struct{}
	// Wait returns when all runners have ended. When graceful ends, Wait interrupts the runners: each closes its
	// streams and writes its shard. When force ends, Wait does not wait for the shards. An error means that the
	// connection to the runners was lost, and that the runners continue.
	Wait(graceful, force context.Context) error
	// Ends describes the runners that did not complete and, as runner 0, other reasons why the run is incomplete. It
	// may be called only after Wait has returned.
	Ends() []shard.RunnerEnd
}

func newDriver(s *session) (driver, error) {
	switch {
	case s.On == "k8s":
		return newKubernetes(s)
	case runtime.GOOS == "windows": // Windows has no signals, and no pipe that a child inherits
		return nil, UsageError{errors.New("soak runs k6 on Linux and macOS only; on Windows run soak in WSL, or write a shard with `k6 run --out soak=FOLDER` and judge it with `soak merge FOLDER`")}
	}
	return &local{session: s}, nil
}

var (
	_ driver   = (*local)(nil)
	_ driver   = (*kubernetes)(nil)
	_ roundRun = (*runners.Group)(nil)
)
