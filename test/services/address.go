package services

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// freeAddress is an address that nobody listens on. Its port is under those that Linux gives to clients: while a service
// restarts, a client that got its port could keep it from coming back, or even connect to itself.
func freeAddress() (string, error) {
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
