package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// interrupts turns Ctrl-C, and a terminal that is closed, into two contexts: the first asks everyone
// to stop in order, a second Ctrl-C ends everything at once. A closed terminal may say so twice, which
// kills nothing; under nohup it says nothing.
func interrupts(parent context.Context) (gentle, kill context.Context, stop func()) {
	kill, killNow := context.WithCancel(parent)
	gentle, stopGently := context.WithCancel(kill)
	signals, hangups := make(chan os.Signal, 2), make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-hangups:
			fmt.Fprintln(os.Stderr, "soak: the terminal was closed: stopping the runners; what was seen is kept, the verdict will be invalid. Under nohup a soak goes on.")
			stopGently()
		case <-signals:
			fmt.Fprintln(os.Stderr, "\nsoak: stopping the runners; what was seen is kept, the verdict will be invalid. Press Ctrl-C again to kill.")
			stopGently()
		case <-done:
			return
		}
		select {
		case <-signals:
			fmt.Fprintln(os.Stderr, "\nsoak: killing everything.")
			killNow()
		case <-done:
		}
	}()
	return gentle, kill, func() {
		signal.Stop(signals)
		signal.Stop(hangups)
		close(done)
		stopGently()
		killNow()
	}
}

// surviveClosedPipes keeps a reader that goes away (`soak run | head`) from ending the process: without
// it the kernel's SIGPIPE does, and there is no verdict. The signal is not ignored, as the processes
// that we start would inherit that.
func surviveClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// A departing writer is stdout, whose reader may go away, with its pipe or its terminal. What is said
// then is said to nobody; the run goes on, and its verdict stands in the files.
type departing struct{ io.Writer }

func (d departing) Write(b []byte) (int, error) {
	n, err := d.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) {
		return len(b), nil
	}
	return n, err
}
