package target

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/child"
	"github.com/sse-soak/sse-soak/nginx"
)

// LocalConfig is what a local target needs to know of the run.
type LocalConfig struct {
	Backend      string // path of the binary
	Connections  int
	NoopInterval time.Duration
	LogDir       string
	NoNginx      bool   // leave nginx out even where it is installed
	Token        string // that the backend wants; "": a new one
	Suffix       string // of the names of its processes and logs, where there are several
}

// Local is the backend on a unix socket, with nginx in front of it where it is installed.
// What else the backend reads (BACKEND_FAULT, NOOP_SCHEDULE, …) it takes from our environment.
type Local struct {
	Nginx string // version, "" when the runners go to the backend itself

	config  LocalConfig
	dir     string // sockets, configuration, pid file
	listen  string // of the backend
	token   string
	port    string // where the runners go
	client  *http.Client
	backend *service
	nginx   *service // nil without nginx
}

// StartLocal starts the target and waits until it is ready. After an error nothing is left.
func StartLocal(ctx context.Context, c LocalConfig) (*Target, error) {
	dir, err := os.MkdirTemp("", "soak-") // short: a unix socket's path may have 107 bytes
	if err != nil {
		return nil, fmt.Errorf("make a folder for sockets: %w", err)
	}
	if c.Token == "" {
		if c.Token, err = newToken(); err != nil {
			return nil, err
		}
	}
	l := &Local{config: c, dir: dir, token: c.Token}
	if err := l.start(ctx); err != nil {
		l.Stop(ctx)
		return nil, err
	}
	return &Target{URL: "http://" + l.port, Token: l.token, Local: l, base: "http://backend", client: l.client}, nil
}

func newToken() (string, error) {
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return hex.EncodeToString(secret), nil
}

func (l *Local) start(ctx context.Context) error {
	var err error
	if l.port, err = freePort(); err != nil {
		return err
	}
	binary := nginxBinary()
	if binary == "" || l.config.NoNginx {
		l.listen, l.client = l.port, direct("tcp", l.port)
	} else {
		socket := filepath.Join(l.dir, "backend.sock")
		l.listen, l.client = "unix:"+socket, direct("unix", socket)
	}
	l.backend = newService("the backend"+l.config.Suffix, l.startBackend)
	if err := l.backend.start(false); err != nil {
		return err
	}
	if err := l.await(ctx, l.backend, l.client, "http://backend/readyz"); err != nil {
		return err
	}
	if l.listen == l.port {
		return nil
	}
	return l.startNginx(ctx, binary)
}

// nginxBinary is where nginx is, "" if nowhere. Debian keeps it off a user's PATH.
func nginxBinary() string {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// freePort picks an address that nothing else will take before we listen on it: a free port of
// a loopback address drawn at random. Two soaks that pick at the same moment would otherwise
// now and then agree, and one would be held against the other's target.
func freePort() (string, error) {
	var octets [3]byte
	if _, err := rand.Read(octets[:]); err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	host := net.IPv4(127, 1+octets[0]%254, octets[1], 1+octets[2]%254).String()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// startBackend starts the backend, one that died without the faults it was given.
func (l *Local) startBackend(again bool) (*child.Child, error) {
	env := append(os.Environ(), "LISTEN="+l.listen, "NOOP_INTERVAL="+l.config.NoopInterval.String(), "BACKEND_TOKEN="+l.token)
	if again {
		env = append(env, "BACKEND_FAULT=")
	}
	b, err := child.Start(child.Spec{
		Name: "the backend", Path: l.config.Backend, Log: l.log("backend"), Env: env, Orphan: syscall.SIGTERM,
	})
	if err != nil {
		return nil, fmt.Errorf("%w; `make build` makes it", err)
	}
	return b, nil
}

func (l *Local) log(name string) string {
	return filepath.Join(l.config.LogDir, name+l.config.Suffix+".log")
}

func (l *Local) startNginx(ctx context.Context, binary string) error {
	conf := filepath.Join(l.dir, "nginx.conf")
	f, err := os.Create(conf)
	if err != nil {
		return fmt.Errorf("write the configuration of nginx: %w", err)
	}
	log, err := filepath.Abs(l.log("nginx"))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	err = nginx.Render(f, nginx.Config{
		Dir: l.dir, ErrorLog: log, Listen: l.port, Socket: filepath.Join(l.dir, "backend.sock"),
		Root: os.Geteuid() == 0, Workers: runtime.NumCPU(),
		Connections: l.config.Connections, NoopInterval: l.config.NoopInterval,
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	l.nginx = newService("nginx"+l.config.Suffix, func(bool) (*child.Child, error) {
		return child.Start(child.Spec{
			Name: "nginx", Path: binary, Args: []string{"-e", log, "-c", conf}, Env: os.Environ(), Log: log, Orphan: syscall.SIGTERM,
		})
	})
	if err := l.nginx.start(false); err != nil {
		return err
	}
	l.Nginx = "nginx"
	if text, err := exec.CommandContext(ctx, binary, "-v").CombinedOutput(); err == nil {
		l.Nginx = versionOf(string(text))
	}
	return l.await(ctx, l.nginx, http.DefaultClient, "http://"+l.port+"/nginx-status")
}

// await waits until url answers 200, the process dies or 15 s are over.
func (l *Local) await(ctx context.Context, s *service, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		err := answers(ctx, client, url)
		if err == nil {
			return nil
		}
		select {
		case <-s.present().Done():
			return fmt.Errorf("%s ended before it was ready (%s); the logs in %s say why", s.name, ending(s.present().Err()), l.config.LogDir)
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready in time: %w", s.name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func answers(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// Ready waits until the backend answers, which after a death takes a moment.
func (l *Local) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		err := answers(ctx, l.client, "http://backend/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the backend does not answer any more: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Deaths says when and how the processes of the target died on their own.
func (l *Local) Deaths() []string {
	deaths := l.backend.died()
	if l.nginx != nil {
		deaths = append(deaths, l.nginx.died()...)
	}
	return deaths
}

// NginxPID is the master process of nginx, 0 without nginx.
func (l *Local) NginxPID() int {
	if l.nginx == nil {
		return 0
	}
	return l.nginx.present().PID()
}

// NginxStatus is nginx's status page. ok is false without nginx, or when it does not answer.
func (l *Local) NginxStatus(ctx context.Context) (page io.ReadCloser, ok bool) {
	if l.nginx == nil {
		return nil, false
	}
	return show(ctx, http.DefaultClient, "http://"+l.port+"/nginx-status", "")
}

// Stop ends the target in order, nginx first, and leaves nothing behind. When ctx ends it
// does not wait any longer and kills.
func (l *Local) Stop(ctx context.Context) {
	if l.nginx != nil {
		l.nginx.stop(ctx, 5*time.Second)
	}
	if l.backend != nil {
		l.backend.stop(ctx, 10*time.Second)
	}
	_ = os.RemoveAll(l.dir)
}
