package runners

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Exit codes of k6.
const (
	// ThresholdsFailed means that the runner ended normally, but a threshold failed. The verdict has the cause.
	ThresholdsFailed = 99
	// interruptedBySignal means that the runner ended gracefully after a signal.
	interruptedBySignal = 105
)

// Ends describes the runners that did not complete. It omits runners that ended gracefully after Wait interrupted them.
func (g *Group) Ends() (out []shard.RunnerEnd) {
	add := func(runner int, format string, args ...any) {
		out = append(out, shard.RunnerEnd{Runner: runner, Text: fmt.Sprintf(format, args...)})
	}
	for _, r := range g.runners {
		switch code := r.ExitCode(); {
		case code == 0 || code == ThresholdsFailed || g.interrupted && code == interruptedBySignal:
		case r.isKilled.Load():
			add(r.index, "runner %d sent no more reports and was killed at %s UTC%s", r.index, r.End().UTC().Format(time.TimeOnly), r.seeLog(" (see %s)"))
		case code < 0:
			add(r.index, "runner %d was terminated at %s UTC (%v%s)", r.index, r.End().UTC().Format(time.TimeOnly), r.Err(), r.seeLog("; see %s"))
		default:
			last, _ := lastError(r.logPath)
			add(r.index, "runner %d ended with exit code %d: %s", r.index, code, last)
		}
	}
	return out
}

// seeLog returns text with the name of the runner's log in place of %s, or "" if the log is missing or empty.
func (r *runner) seeLog(text string) string {
	if info, err := os.Stat(r.logPath); err != nil || info.Size() == 0 {
		return ""
	}
	return fmt.Sprintf(text, filepath.Base(r.logPath))
}

// lastError returns LastError of the file at path. If the file has no error, ok is false and last names the path. If the
// file cannot be opened, ok is false and last is the reason.
func lastError(path string) (last string, ok bool) {
	f, err := safefile.Open(path, safefile.Table)
	if err != nil {
		return err.Error(), false
	}
	defer f.Close()
	if last, ok = LastError(f); !ok {
		last = "see " + path
	}
	return last, ok
}

// LastError returns the last error message in a log of k6; ok is false if the log has no error. It skips failed writes
// to Prometheus (FailedWrites), which do not end a runner.
func LastError(log io.Reader) (last string, ok bool) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if _, message, found := strings.Cut(lines.Text(), "level=error msg="); found && !strings.Contains(message, remoteWriteMark) {
			last, ok = message, true
		}
	}
	return last, ok
}
