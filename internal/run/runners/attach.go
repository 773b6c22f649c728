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

// PipePath returns the path of the named pipe on which a runner that survives soak reports its progress. The runner has
// the pipe open while it runs.
func PipePath(dir string, index int) string {
	return filepath.Join(dir, fmt.Sprintf("k6-runner-%d.pipe", index))
}

// ErrAttached reports that another soak process is attached to a runner.
var ErrAttached = errors.New("another soak process is already attached")

// Attach adds a runner that another soak process started, if the runner still runs, and reports whether it does. last
// is the runner as its last checkpoint describes it.
func (g *Group) Attach(c Config, last shard.Runner) (running bool, err error) {
	reader, err := openPipe(PipePath(c.Dir, last.Index))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("attach to runner %d: %w", last.Index, err)
	}
	if isClosed(reader) {
		return false, reader.Close()
	}
	r := &runner{index: last.Index, onRetry: c.OnRetry, onReport: c.OnReport, logPath: logPath(c.Dir, last.Index)}
	var release func()
	if r.Process, release, err = process.Adopt(fmt.Sprintf("runner %d", last.Index), last.PID); err != nil {
		_ = reader.Close()
		return false, err
	}
	r.readers.Add(1)
	go func() {
		defer release()
		r.readReports(reader)
	}()
	g.runners = append(g.runners, r)
	return true, nil
}

// isClosed reports whether no process can write to a pipe. It may read a byte, which makes one report unreadable.
func isClosed(pipe *os.File) bool {
	const timeout = 100 * time.Millisecond // the end of a pipe without a writer is read at once
	_ = pipe.SetReadDeadline(time.Now().Add(timeout))
	_, err := pipe.Read(make([]byte, 1))
	_ = pipe.SetReadDeadline(time.Time{})
	return errors.Is(err, io.EOF)
}

// Join adds the runners of another group.
func (g *Group) Join(other *Group) { g.runners = append(g.runners, other.runners...) }

// openPipes returns both ends of a runner's pipe for progress, and the signal for the runner if soak is killed. With a
// named pipe there is no signal, because another soak process can open the pipe.
func (c Config) openPipes(index int) (reader, writer *os.File, orphan syscall.Signal, err error) {
	if c.Survive {
		_ = os.Remove(PipePath(c.Dir, index)) // left by the runner that this one replaces
		if reader, writer, err = makePipe(PipePath(c.Dir, index)); err == nil {
			return reader, writer, 0, nil
		}
	}
	reader, writer, err = os.Pipe()
	return reader, writer, syscall.SIGKILL, err
}
