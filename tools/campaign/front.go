package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/process"
	"github.com/sse-soak/sse-soak/nginx"
)

// listen is a listener at a loopback address of its own: no two runs meet at one.
func listen() (net.Listener, error) {
	var octets [3]byte
	if _, err := rand.Read(octets[:]); err != nil {
		return nil, err
	}
	return net.Listen("tcp", net.IPv4(127, 1+octets[0]%254, octets[1], 1+octets[2]%254).String()+":0")
}

// A front is an nginx in front of a service on a unix socket.
type front struct {
	*process.Process
	address string
}

// startNginx keeps its files in dir.
func startNginx(ctx context.Context, dir, socket string, p *plan) (*front, error) {
	l, err := listen()
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	_ = l.Close()
	conf, log := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "nginx.log")
	f, err := os.Create(conf)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := nginx.Render(f, nginx.Config{
		Dir: dir, ErrorLog: log, Listen: address, Socket: socket, Root: os.Geteuid() == 0, Workers: 1,
		Connections: p.Connections, NoopInterval: p.interval(),
	}); err != nil {
		return nil, err
	}
	c, err := process.Start(process.Spec{
		Name: "nginx", Path: nginxPath(), Args: []string{"-e", log, "-c", conf}, Env: os.Environ(), Log: log, Orphan: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	fr := &front{c, address}
	for range 200 {
		resp, err := http.Get("http://" + address + "/nginx-status")
		if err == nil {
			return fr, resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			fr.stop()
			return nil, ctx.Err()
		case <-c.Done():
			return nil, fmt.Errorf("nginx ended: see %s", log)
		case <-time.After(25 * time.Millisecond):
		}
	}
	fr.stop()
	return nil, fmt.Errorf("nginx did not answer: see %s", log)
}

func (f *front) stop() { f.Stop(context.Background(), syscall.SIGTERM, 5*time.Second) }

// nginxPath is where nginx is, "" where it is not installed.
func nginxPath() string {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
