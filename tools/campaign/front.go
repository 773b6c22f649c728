package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/nginx"
)

// listen returns a listener at its own loopback address, which no other run uses.
func listen() (net.Listener, error) {
	var octets [3]byte
	_, _ = rand.Read(octets[:]) // which never fails
	return net.Listen("tcp", net.IPv4(127, 1+octets[0]%254, octets[1], 1+octets[2]%254).String()+":0")
}

// startNginx starts one in front of a service on a unix socket. It keeps its files in dir.
func startNginx(ctx context.Context, dir, socket string, p *plan) (address string, stop func(), err error) {
	l, err := listen()
	if err != nil {
		return "", nil, err
	}
	address = l.Addr().String()
	_ = l.Close()
	conf, log := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "nginx.log")
	f, err := os.Create(conf)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if err := nginx.Render(f, nginx.Config{
		Dir: dir, ErrorLog: log, Listen: address, Sockets: []string{socket}, Root: os.Geteuid() == 0, Workers: 1,
		Connections: p.Connections, NoopInterval: p.interval(),
	}); err != nil {
		return "", nil, err
	}
	path, err := process.Find("nginx")
	if err != nil {
		return "", nil, err
	}
	c, err := process.Start(process.Spec{
		Name: "nginx", Path: path, Args: []string{"-e", log, "-c", conf}, Env: os.Environ(), Log: log, Orphan: syscall.SIGTERM,
	})
	if err != nil {
		return "", nil, err
	}
	stop = func() { c.Stop(context.Background(), syscall.SIGTERM, 5*time.Second) }
	answers := func() bool {
		resp, err := http.Get("http://" + address + "/nginx-status")
		return err == nil && resp.Body.Close() == nil
	}
	waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if !await(waiting, answers) {
		stop()
		return "", nil, fmt.Errorf("nginx did not answer: see %s", log)
	}
	return address, stop, nil
}

// pause waits; false: ctx has ended before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// await waits until done; false: ctx has ended before.
func await(ctx context.Context, done func() bool) bool {
	for !done() {
		if !pause(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return true
}
