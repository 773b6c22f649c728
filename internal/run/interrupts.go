package run

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signalEcho is the time within which a second signal has the same cause as the first. timeout(1) sends the signal to
// the program and then to its process group.
const signalEcho = 300 * time.Millisecond

// interrupts returns two contexts that signals end. graceful ends at the first Ctrl-C, SIGTERM or SIGHUP (a closed
// terminal). force ends at the next Ctrl-C or SIGTERM after signalEcho. A second SIGHUP has no effect, because a
// closing terminal may send two. Under nohup SIGHUP is ignored. The caller must call stop, which ends both contexts.
func interrupts(parent context.Context) (graceful, force context.Context, stop func()) {
	force, forceNow := context.WithCancel(parent)
	graceful, stopGracefully := context.WithCancel(force)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endingSignals()...)
	done := make(chan struct{})
	go func() {
		message := "stopping the run; results so far are kept. Press Ctrl-C again to kill all processes."
		select {
		case s := <-signals:
			if s == syscall.SIGHUP {
				message = "the terminal was closed: stopping the run; results so far are kept. Under nohup a run continues."
			}
		case <-done:
			return
		}
		stopped := time.Now()
		printMessage(message)
		stopGracefully()
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGHUP || time.Since(stopped) < signalEcho {
					continue
				}
				printMessage("killing everything")
				forceNow()
			case <-done:
			}
			return
		}
	}()
	return graceful, force, func() {
		signal.Stop(signals)
		close(done)
		stopGracefully()
		forceNow()
	}
}

// endingSignals returns the signals that end soak in an orderly way: Ctrl-C, SIGTERM and SIGHUP (a closed terminal).
// Under nohup SIGHUP is ignored.
func endingSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// UntilSignal returns a context that ends at the signals that end `soak run`: Ctrl-C, SIGTERM and SIGHUP.
func UntilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, endingSignals()...)
}
