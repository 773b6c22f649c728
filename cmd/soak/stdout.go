package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// surviveClosedPipes keeps SIGPIPE from ending the process before there is a verdict, as in `soak run | head`. It does
// not ignore the signal, because child processes would ignore it too.
func surviveClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// A lossyOutput discards output to a closed pipe or terminal, so that the run continues and writes its verdict. It
// keeps the last other error, such as the error of a full disk.
type lossyOutput struct {
	io.Writer
	err error
}

func (o *lossyOutput) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) {
		return len(b), nil
	}
	if err != nil {
		o.err = err
	}
	return n, err
}
