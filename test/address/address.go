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

// reservation is the time for which no other test gets an address. The program of the test must start to listen
// within it.
const reservation = time.Minute

// Free returns a free address, which no other test of this machine gets for a minute. Its port is under those that
// Linux gives to clients. Otherwise, until a program listens and while it restarts, a client could get its port, keep
// it, or even connect to itself.
func Free() (string, error) {
	const lowest, ports, tries = 20000, 12000, 100
	var failed error
	for range tries {
		port := lowest + rand.IntN(ports)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if failed = lock(port); failed != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		failed = err
	}
	return "", errors.Join(errors.New("no free port from 20000 to 31999"), failed)
}

// lock locks a file of that port. Other processes of the tests, and other open files of this one, find it locked.
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

// Reserve returns a free address, as Free does, and fails the test if there is none.
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
