package run

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// endingSignals returns the signals that end soak in an orderly way: Ctrl-C, SIGTERM and SIGHUP (a closed terminal).
// Under nohup SIGHUP is ignored.
func endingSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// UntilSignal returns a context that ends at Ctrl-C, SIGTERM or SIGHUP, as `soak run` does.
func UntilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, endingSignals()...)
}
