package main

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/nginx"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/reverse"
)

// listen listens on a free port of a random loopback address, so that concurrent runs do not share an address.
func listen() (net.Listener, error) {
	var octets [3]byte
	_, _ = rand.Read(octets[:]) // never fails
	return net.Listen("tcp", net.IPv4(127, 1+octets[0]%254, octets[1], 1+octets[2]%254).String()+":0")
}

// startNginx starts nginx in front of a service on a Unix socket. front is the address of nginx; dir is its folder.
func startNginx(ctx context.Context, dir, socket string, p *plan) (front string, stop func(), err error) {
	front, err = address.Free()
	if err != nil {
		return "", nil, err
	}
	var text strings.Builder
	if err := nginx.Render(&text, nginx.Config{
		Dir: dir, ErrorLog: filepath.Join(dir, "nginx.log"), Listen: front, Sockets: []string{socket}, Root: os.Geteuid() == 0, Workers: 1,
		Connections: p.Connections, NoopInterval: p.interval(),
	}); err != nil {
		return "", nil, err
	}
	stop, err = reverse.Run(ctx, dir, text.String(), "tcp", front)
	return front, stop, err
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// await waits until done returns true. It returns false if ctx ends first.
func await(ctx context.Context, done func() bool) bool {
	for !done() {
		if !pause(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return true
}
