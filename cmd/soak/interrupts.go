package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interrupts turns Ctrl-C into two contexts: the first asks everyone to stop in order, the
// second one ends everything at once.
func interrupts(parent context.Context) (gentle, kill context.Context, stop func()) {
	kill, killNow := context.WithCancel(parent)
	gentle, stopGently := context.WithCancel(kill)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
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
		close(done)
		stopGently()
		killNow()
	}
}
