package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/test/untested"
)

// inFlight is a resource whose creation takes some seconds and has no provider to download.
const inFlight = `resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch started && sleep 4"
  }
}
`

// A screen collects what a terminal shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// openTerminal returns both ends of a pseudo terminal.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		untested.Skip(t, "Ctrl-C during terraform: this machine has no pseudo terminals")
	}
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return keyboard, terminal
}

// applyOnATerminal starts soak-aws on a terminal of its own, with the real terraform, and returns when a creation is in flight.
func applyOnATerminal(t *testing.T) (dir string, cmd *exec.Cmd, keyboard *os.File, shown *screen) {
	t.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		untested.Skip(t, "Ctrl-C during terraform: terraform is not installed here")
	}
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(inFlight), 0o600))
	initialize := exec.Command("terraform", "init", "-input=false")
	initialize.Dir = dir
	out, err := initialize.CombinedOutput()
	require.NoError(t, err, string(out))

	self, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "change")
	require.NoError(t, os.Symlink(self, program))
	keyboard, terminal := openTerminal(t)
	defer terminal.Close()
	cmd = exec.Command(program, dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	shown = &screen{}
	go func() { _, _ = io.Copy(shown, keyboard) }()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "started"))
		return err == nil
	}, time.Minute, 10*time.Millisecond, "terraform creates nothing")
	return dir, cmd, keyboard, shown
}

// A terminal sends Ctrl-C to the whole foreground group. With a second SIGINT terraform exits without writing its state.
func TestCtrlCReachesTerraformOnce(t *testing.T) {
	t.Parallel()
	_, cmd, keyboard, shown := applyOnATerminal(t)
	_, err := keyboard.Write([]byte{3})
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return strings.Contains(shown.String(), "Interrupt received") }, time.Minute, 10*time.Millisecond, shown)
	require.NoError(t, keyboard.Close())
	assert.NotContains(t, shown.String(), "Two interrupts")
}

// If the terminal is closed, terraform finishes what it does: nothing is made that no state knows, and no lock stays.
func TestAClosedTerminalLetsTerraformFinish(t *testing.T) {
	t.Parallel()
	dir, cmd, keyboard, _ := applyOnATerminal(t)
	require.NoError(t, keyboard.Close())
	_ = cmd.Wait() // its output has nowhere to go
	state, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	require.NoError(t, err)
	assert.Contains(t, string(state), "terraform_data")
	assert.NotContains(t, strings.Join(names(t, dir), " "), "lock.info")
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
