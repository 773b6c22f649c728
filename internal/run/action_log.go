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

// An actionLog copies the output of an action to a log file, without secrets. The action writes to an unlinked file.
// Unlike a pipe, this file stays writable for processes that still run after soak has exited.
type actionLog struct {
	raw    *os.File // the unlinked file
	out    *os.File // the log
	stop   chan struct{}
	copier sync.WaitGroup

	mu       sync.Mutex
	offset   int64          // number of bytes of raw that have been read
	redactor *secret.Writer // writes to out, without secrets
	end      []byte         // the last maxOutput bytes of the log
	err      error
}

const (
	copyEvery = 100 * time.Millisecond
	copyBytes = 64 << 10 // maximum of one read
)

func openActionLog(path string, secrets *secret.Values) (*actionLog, error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) // #nosec G304 -- in the run's folder
	if err != nil {
		return nil, fmt.Errorf("open the log of the action: %w", err)
	}
	rawPath := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".raw")
	raw, err := os.OpenFile(rawPath, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600) // #nosec G304 -- in the run's folder
	if err == nil {
		if err = os.Remove(rawPath); err != nil {
			_ = raw.Close()
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the log of the action: %w", err), out.Close())
	}
	l := &actionLog{raw: raw, out: out, stop: make(chan struct{})}
	l.redactor = secrets.Writer(l)
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

// copy copies the output since the last call, except for its end if that may be a part of a secret.
func (l *actionLog) copy() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := l.raw.Stat(); err == nil && info.Size() < l.offset { // the action truncated the file, for example by > /dev/stdout
		l.offset = 0
	}
	buffer := make([]byte, copyBytes)
	for {
		n, err := l.raw.ReadAt(buffer, l.offset)
		l.offset += int64(n)
		_, writeErr := l.redactor.Write(buffer[:n])
		l.err = errors.Join(l.err, writeErr)
		if err != nil || n == 0 {
			return
		}
	}
}

// Write writes text, which has no secrets, to the log. The caller holds mu, except in close.
func (l *actionLog) Write(text []byte) (int, error) {
	l.end = append(l.end, text...)
	l.end = l.end[max(0, len(l.end)-maxOutput):]
	return l.out.Write(text)
}

func (l *actionLog) tail() string {
	l.copy()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(l.end) + string(l.redactor.Rest())
	return strings.ToValidUTF8(strings.TrimSpace(text[max(len(text)-maxOutput, 0):]), "")
}

func (l *actionLog) close() error {
	close(l.stop)
	l.copier.Wait()
	l.copy()
	return errors.Join(l.err, l.redactor.Close(), l.out.Close(), l.raw.Close())
}
