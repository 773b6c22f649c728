// Package terminal has outputs for the programs of a test: a pseudo terminal and a buffer.
package terminal

import (
	"bytes"
	"sync"
)

// An Output collects the output of programs. It is safe for concurrent use.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
