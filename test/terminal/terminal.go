// Package terminal provides outputs for the programs of a test: a pseudo terminal and a buffer.
package terminal

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/test/untested"
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

// Open returns the user's side and the program's side of a pseudo terminal, which is closed when the test ends. If no
// pseudo terminal is available, Open skips the test.
func Open(t testing.TB) (window, program *os.File) {
	t.Helper()
	window, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		untested.Skip(t, "no pseudo terminal is available: "+err.Error())
	}
	require.NoError(t, unix.IoctlSetPointerInt(int(window.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(window.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = window.Close(); _ = program.Close() })
	return window, program
}
