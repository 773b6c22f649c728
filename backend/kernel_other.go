//go:build !linux

package main

import (
	"errors"
	"syscall"
	"time"
)

// The backend needs Linux system calls. Elsewhere it compiles, so that editors and
// linters can read it, and fails with this error when it starts.
var errNeedsLinux = errors.New("the backend needs Linux")

var errNoRoom = errors.New("socket buffer is full")

func raiseFileLimit() {}

// fileLimit returns how many files the process may have open.
func fileLimit() uint64 { return 1024 }

// takeDescriptor duplicates the descriptor of a connection. Go's poller does not have the duplicate: no goroutine can
// wait on it, and closing conn leaves it open. No other goroutine may close conn during the call.
func takeDescriptor(syscall.Conn) (int, error) { return -1, errNeedsLinux }

// descriptorOf returns the connection's own descriptor, for watching only.
func descriptorOf(syscall.Conn) (int, error) { return -1, errNeedsLinux }
func setUserTimeout(int, time.Duration)      {}
func sendNow(int, []byte) (int, error)       { return 0, errNeedsLinux }
func closeNow(int)                           {}
func resetNow(int)                           {}

// socketError returns and clears the pending error of a socket; nil if there is none.
func socketError(int) error   { return nil }
func isDisconnect(error) bool { return false }
func killSelf()               {}

// A watcher waits in epoll for peers that close, half-close or fail. It only reports: the scheduler decides and
// closes. One goroutine runs it.
type watcher struct{}

func newWatcher() (*watcher, error)           { return nil, errNeedsLinux }
func (*watcher) add(int, uint32) error        { return errNeedsLinux }
func (*watcher) run(report func([]departure)) {}
func (*watcher) stop()                        {}
