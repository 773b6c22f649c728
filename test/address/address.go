// Package address finds addresses for the programs that tests start.
package address

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const reservation = time.Minute

// Free returns a free loopback address, HOST:PORT, and reserves it for a minute, but at most until this process ends.
// Only Free honors the reservation, in all processes. The port is below the ephemeral ports of Linux, because an
// outgoing connection could take an ephemeral port before the program listens.
func Free() (string, error) {
	const lowest, ports, tries = 20000, 12000, 100
	var lastErr error
	for range tries {
		port := lowest + rand.IntN(ports)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if lastErr = lock(port); lastErr != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		lastErr = err
	}
	return "", errors.Join(fmt.Errorf("none of %d random ports from %d to %d could be reserved", tries, lowest, lowest+ports-1), lastErr)
}

func lock(port int) error {
	dir := filepath.Join(os.TempDir(), "sse-soak-ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(err, f.Close())
	}
	time.AfterFunc(reservation, func() { _ = f.Close() })
	return nil
}

// Reserve is like Free, but an error fails the test.
func Reserve(t interface {
	Helper()
	Fatal(args ...any)
},
) string {
	t.Helper()
	free, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// Host returns a non-loopback IPv4 address of this machine, or "" if the machine has none.
func Host() (string, error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String(), nil
		}
	}
	return "", err
}
