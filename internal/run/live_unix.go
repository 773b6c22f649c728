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

// canReadKeys reports whether a user at a terminal may press keys for this program. A background process that reads
// would be stopped: that signal is ignored, and the read ends with an error then.
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

// onEnter calls open for each line that is typed, until there is no more.
func onEnter(open func()) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		open()
	}
}
