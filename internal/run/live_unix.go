//go:build unix

package run

import (
	"bufio"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// canReadKeys reports whether a user at a terminal can press keys for this program. If so, it makes the process ignore
// SIGTTIN, so that a read in the background fails instead of stopping the process.
func canReadKeys() bool {
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return false
	}
	foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || foreground != syscall.Getpgrp() {
		return false
	}
	signal.Ignore(syscall.SIGTTIN)
	return true
}

func onEnter(open func()) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		open()
	}
}
