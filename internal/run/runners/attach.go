package runners

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// PipePath returns the path of the named pipe by which a runner that survives soak reports its progress. As long as the runner runs,
// it has the pipe open.
func PipePath(dir string, index int) string {
	return filepath.Join(dir, fmt.Sprintf("k6-runner-%d.pipe", index))
}

// ErrAttached reports that another soak listens to a runner.
var ErrAttached = errors.New("another soak follows it")

// Attach adds a runner that another soak started, and reports whether it still runs. last is its last checkpoint.
func (g *Group) Attach(c Config, last shard.Runner) (running bool, err error) {
	listen, err := openPipe(PipePath(c.Dir, last.Index))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("attach to runner %d: %w", last.Index, err)
	}
	if isClosed(listen) {
		return false, listen.Close()
	}
	r := &runner{index: last.Index, onRetry: c.OnRetry, onReport: c.OnReport, log: logPath(c.Dir, last.Index)}
	var ended func()
	if r.Process, ended, err = process.Adopt(fmt.Sprintf("runner %d", last.Index), last.PID); err != nil {
		_ = listen.Close()
		return false, err
	}
	r.reading.Add(1)
	go func() {
		defer ended()
		r.readReports(listen)
	}()
	g.runners = append(g.runners, r)
	return true, nil
}

// isClosed reports whether no process can write to a pipe. A line that it reads is lost.
func isClosed(pipe *os.File) bool {
	const timeout = 100 * time.Millisecond // the end of a pipe without a writer is read at once
	_ = pipe.SetReadDeadline(time.Now().Add(timeout))
	_, err := pipe.Read(make([]byte, 1))
	_ = pipe.SetReadDeadline(time.Time{})
	return errors.Is(err, io.EOF)
}

// Join adds the runners of another group.
func (g *Group) Join(other *Group) { g.runners = append(g.runners, other.runners...) }

// openPipes returns both ends of the pipe for the progress of a runner, and the signal that it gets when soak is killed: none if
// another soak can open the pipe.
func (c Config) openPipes(index int) (listen, speak *os.File, orphan syscall.Signal, err error) {
	if c.Survive {
		_ = os.Remove(PipePath(c.Dir, index)) // of the runner that this one replaces
		if listen, speak, err = makePipe(PipePath(c.Dir, index)); err == nil {
			return listen, speak, 0, nil
		}
	}
	listen, speak, err = os.Pipe()
	return listen, speak, syscall.SIGKILL, err
}
