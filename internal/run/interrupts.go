package run

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interrupts turns signals into two contexts: graceful ends at the first Ctrl-C, SIGTERM or SIGHUP (a closed terminal),
// force at a later Ctrl-C or SIGTERM. A second SIGHUP has no effect, because a closing terminal may send two. Under
// nohup SIGHUP is ignored. The caller must call stop, which ends both contexts.
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
			printMessage("stopping the runners; their results are kept. Press Ctrl-C again to kill them.")
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
