// Package address finds addresses for the programs that tests start.
package address

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Free is an address that nobody listens on. Its port is under those that Linux gives to clients: until a program
// listens, and while it restarts, a client that got its port could keep it from that, or even connect to itself.
func Free() (string, error) {
	const lowest, ports, tries = 20000, 12000, 100
	var failed error
	for range tries {
		address := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(ports))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		failed = err
	}
	return "", errors.Join(errors.New("no free port from 20000 to 31999"), failed)
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
