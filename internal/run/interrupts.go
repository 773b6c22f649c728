package run

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interrupts turns Ctrl-C and a closed terminal (SIGHUP) into two contexts: graceful ends at the first of either, force at
// a Ctrl-C after it. A closing terminal may send SIGHUP twice, so a second SIGHUP does not force. Under nohup SIGHUP is
// ignored.
func interrupts(parent context.Context) (graceful, force context.Context, stop func()) {
	force, forceNow := context.WithCancel(parent)
	graceful, stopGracefully := context.WithCancel(force)
	signals, hangups := make(chan os.Signal, 2), make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-hangups:
			printMessage("the terminal was closed: stopping the runners; their results are kept. Under nohup a run continues.")
			stopGracefully()
		case <-signals:
			printMessage("stopping the runners; their results are kept. Ctrl-C again kills them.")
			stopGracefully()
		case <-done:
			return
		}
		select {
		case <-signals:
			printMessage("killing everything")
			forceNow()
		case <-done:
		}
	}()
	return graceful, force, func() {
		signal.Stop(signals)
		signal.Stop(hangups)
		close(done)
		stopGracefully()
		forceNow()
	}
}
