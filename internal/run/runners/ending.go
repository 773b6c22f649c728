package runners

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// ThresholdsFailed is k6's exit code for a run that ended in order but missed a threshold:
// the verdict sees why, so it is no problem of its own.
const ThresholdsFailed = 99

// Ends returns how the runners ended that did not run to their end.
func (g *Group) Ends() (out []shard.RunnerEnd) {
	add := func(runner int, format string, args ...any) {
		out = append(out, shard.RunnerEnd{Runner: runner, Text: fmt.Sprintf(format, args...)})
	}
	for _, r := range g.runners {
		switch code := r.ExitCode(); {
		case code == 0 || code == ThresholdsFailed:
		case code < 0:
			add(r.index, "runner %d was ended by a signal (%v); %s has what it printed", r.index, r.Err(), r.log)
		default:
			last, _ := lastError(r.log)
			add(r.index, "runner %d ended with exit code %d: %s", r.index, code, last)
		}
	}
	return out
}

// lastError returns LastError of the file at path. It is not ok without an error; the text is then the path of the
// log.
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

// LastError is the last line of a k6 log that tells of an error, for the reader who should not have to open it. Metrics that
// did not reach a Prometheus are no reason for how a run ended: FailedWrites has them.
func LastError(log io.Reader) (last string, ok bool) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if _, message, found := strings.Cut(lines.Text(), "level=error msg="); found && !strings.Contains(message, ofRemoteWrite) {
			last, ok = message, true
		}
	}
	return last, ok
}
