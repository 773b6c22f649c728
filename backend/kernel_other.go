//go:build !linux

package main

import (
	"errors"
	"syscall"
	"time"
)

// errNeedsLinux is the error of functions that need Linux. On other systems the backend compiles, for editors and
// linters, but can serve only `backend model`.
var errNeedsLinux = errors.New("the backend needs Linux")

var errBufferFull = errors.New("the buffer of the stream is full")

func raiseFileLimit()                          {}
func fileLimit() uint64                        { return 1024 }
func takeDescriptor(syscall.Conn) (int, error) { return -1, errNeedsLinux }
func descriptorOf(syscall.Conn) (int, error)   { return -1, errNeedsLinux }
func setUserTimeout(int, time.Duration)        {}
func sendNow(int, []byte) (int, error)         { return 0, errNeedsLinux }
func closeNow(int)                             {}
func resetNow(int)                             {}
func socketError(int) error                    { return nil }
func isDisconnect(error) bool                  { return false }
func killSelf()                                {}

type watcher struct{}

func newWatcher() (*watcher, error)           { return nil, errNeedsLinux }
func (*watcher) add(int, uint32) error        { return errNeedsLinux }
func (*watcher) run(report func([]departure)) {}
func (*watcher) stop()                        {}
