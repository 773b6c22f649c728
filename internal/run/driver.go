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

// A driver is who runs the runners of a session: processes of this machine, one of several machines that share a run,
// or Kubernetes. The session calls check, prepare, start (once for each round), targetState and judge in this order,
// and close when it is over, whatever came before. It trusts a driver to have filled in session.targets, dir and
// location when prepare returns nil.
type driver interface {
	// check lists what cannot be run this way, before anything is started or written.
	check(ctx context.Context) error
	// prepare makes the folder of the run, has the target answer, and finds out whether shards can be read from where
	// the runners leave them. After an error nothing is left that close does not remove.
	prepare(ctx context.Context) error
	// start starts the runners of a round. After an error none of them is left.
	start(ctx context.Context, r round) (running, error)
	// openShards opens the location of shards by the URL that this machine can reach; runners may need another one.
	openShards(ctx context.Context, location string) (store.Store, error)
	// targetState lists in sentences how the target failed since prepare (by a crash, for instance), and who of it does not
	// answer any more. These are faults of the service and not of the run; only what was observed is listed.
	targetState(ctx context.Context) (failures []verdict.Failure, unreachable []string)
	// judge makes the verdict from the files in the folder of the run. A part of a run only delivers its files.
	judge(graceful, force context.Context) (verdict.Outcome, error)
	// close stops what prepare and start started: gracefully until force ends, then at once.
	close(force context.Context)
}

// A round is one start of all runners.
type round struct {
	dir    results.Dir // for logs and shards
	shards string      // location that the runners write their shards to
	// settings are those that only the script of the suite has; env has further variables of the runners.
	settings, env map[string]string
}

// running are the runners of a round, from their start to the end of the last one.
type running interface {
	// Started is closed when all have begun.
	Started() <-chan struct{}
	// Wait returns when all have ended. When graceful ends it asks them to end: each closes its streams and still
	// writes its shard. When force ends it does not wait for that. An error means that contact with them was lost,
	// and that they continue.
	Wait(graceful, force context.Context) error
	// Progress is what all have counted so far. It is for people: no verdict rests on it.
	Progress() (shard.Progress, *shard.Histogram)
	// Ends returns how runners ended that did not run to their end, and as runner 0 what else makes the run incomplete. It may be
	// called when Wait has returned.
	Ends() []shard.RunnerEnd
}

// newDriver is the driver that the configuration asks for.
func newDriver(s *session) (driver, error) {
	switch {
	case s.On == "k8s":
		return newKubernetes(s)
	case runtime.GOOS == "windows": // no signals, and no pipe that a child inherits
		return nil, UsageError{errors.New("soak runs k6 on Linux and macOS only; on Windows run soak in WSL, or write a shard with `k6 run --out soak=FOLDER` and judge it with `soak merge FOLDER`")}
	case s.part > 0:
		return &part{local{session: s}}, nil
	}
	return &local{session: s}, nil
}

var (
	_ driver  = (*local)(nil)
	_ driver  = (*part)(nil)
	_ driver  = (*kubernetes)(nil)
	_ running = (*runners.Group)(nil)
)
