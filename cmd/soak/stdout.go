package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// surviveClosedPipes keeps a closed pipe (`soak run | head`) from ending the process by SIGPIPE before there is a
// verdict. The signal is not ignored, because child processes would inherit that.
func surviveClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// A closedOutput is stdout, whose reader may exit, with its pipe or its terminal. Further output is lost; the run
// continues, and its verdict is in the files.
type closedOutput struct{ io.Writer }

func (d closedOutput) Write(b []byte) (int, error) {
	n, err := d.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) {
		return len(b), nil
	}
	return n, err
}
