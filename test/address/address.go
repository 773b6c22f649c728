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

// reserved is the time for which an address is not given to another test: until then its program listens.
const reserved = time.Minute

// Free returns a free address, which no other test of this machine gets for a minute. Its port is under those that
// Linux gives to clients. Otherwise, until a program listens and while it restarts, a client could get its port, keep
// it, or even connect to itself.
func Free() (string, error) {
	const lowest, ports, tries = 20000, 12000, 100
	var failed error
	for range tries {
		port := lowest + rand.IntN(ports)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if failed = reserve(port); failed != nil {
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

// reserve locks a file of that port, which other processes of the tests see, and another open file of this one too.
func reserve(port int) error {
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
	time.AfterFunc(reserved, func() { _ = f.Close() })
	return nil
}

// For is Free for a test, which fails without one.
func For(t interface {
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
