package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/secret"
)

// An actionLog copies the output of an action to its log, without secrets. The action writes to an unlinked file. Unlike a pipe,
// this stays writable for processes that the action leaves running after soak has exited.
type actionLog struct {
	raw     *os.File // the unlinked file
	out     *os.File // the log
	secrets *secret.Values
	stop    chan struct{}
	copier  sync.WaitGroup

	mu   sync.Mutex
	read int64  // the offset in raw up to which bytes are read
	rest []byte // the start of an incomplete line
	last []byte // the end of the log
	err  error
}

const (
	copyEvery = 100 * time.Millisecond
	mostLine  = 64 << 10 // longer lines are written in parts
	overlap   = 8 << 10  // kept back between two parts: longer than any form of a secret
)

// openActionLog creates the log at path and starts copying to it.
func openActionLog(path string, secrets *secret.Values) (*actionLog, error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // G304: in the run's folder
	if err != nil {
		return nil, fmt.Errorf("open the log of the action: %w", err)
	}
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".raw")
	raw, err := os.OpenFile(hidden, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600) //nolint:gosec // G304: in the run's folder
	if err == nil {
		err = os.Remove(hidden)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the log of the action: %w", err), out.Close())
	}
	l := &actionLog{raw: raw, out: out, secrets: secrets, stop: make(chan struct{})}
	l.copier.Go(func() {
		for {
			select {
			case <-time.After(copyEvery):
				l.copy()
			case <-l.stop:
				return
			}
		}
	})
	return l, nil
}

// copy copies the lines that were completed since the last call.
func (l *actionLog) copy() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := l.raw.Stat(); err == nil && info.Size() < l.read { // the action truncated it, for example by > /dev/stdout
		l.read = 0
	}
	buffer := make([]byte, mostLine)
	for {
		n, err := l.raw.ReadAt(buffer, l.read)
		l.read += int64(n)
		l.rest = append(l.rest, buffer[:n]...)
		line := strings.LastIndexByte(string(l.rest), '\n') + 1
		l.write(l.rest[:line])
		if l.rest = l.rest[line:]; len(l.rest) > mostLine {
			l.rest = l.secrets.Replace(l.rest, secret.Redacted)
			part := max(0, len(l.rest)-overlap)
			l.write(l.rest[:part])
			l.rest = l.rest[part:]
		}
		if err != nil || n == 0 {
			return
		}
	}
}

func (l *actionLog) write(text []byte) {
	if len(text) == 0 {
		return
	}
	clean, _ := l.secrets.Clean(text)
	_, err := l.out.Write(clean)
	l.err = errors.Join(l.err, err)
	l.last = append(l.last, clean...)
	l.last = l.last[max(0, len(l.last)-mostOutput):]
}

// tail returns the end of the output so far.
func (l *actionLog) tail() string {
	l.copy()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(l.last) + l.secrets.String(string(l.rest))
	return strings.ToValidUTF8(strings.TrimSpace(text[max(len(text)-mostOutput, 0):]), "")
}

// close copies the remaining output and closes the files.
func (l *actionLog) close() error {
	close(l.stop)
	l.copier.Wait()
	l.copy()
	l.write(l.rest)
	return errors.Join(l.err, l.out.Close(), l.raw.Close())
}
