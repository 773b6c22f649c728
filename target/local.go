package target

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
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
	Env          []string // of the backend, for what only it knows: BACKEND_FAULT, NOOP_SCHEDULE, …
	NoNginx      bool     // leave nginx out even where it is installed
}

// Local is the backend on a unix socket, with nginx in front of it where it is installed.
type Local struct {
	Nginx string // version, "" when the runners go to the backend itself

	config LocalConfig
	dir    string // sockets, configuration, pid file
	listen string // of the backend
	token  string
	port   string // where the runners go
	client *http.Client

	mu       sync.Mutex
	backend  *child.Child
	nginx    *child.Child
	stopping bool
	deaths   []string
	watcher  sync.WaitGroup
}

// StartLocal starts the target and waits until it is ready. After an error nothing is left.
func StartLocal(ctx context.Context, c LocalConfig) (*Target, error) {
	dir, err := os.MkdirTemp("", "soak-") // short: a unix socket's path may have 107 bytes
	if err != nil {
		return nil, fmt.Errorf("make a folder for sockets: %w", err)
	}
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	l := &Local{config: c, dir: dir, token: hex.EncodeToString(secret)}
	t := &Target{Token: l.token, Local: l, base: "http://backend"}
	if err := l.start(ctx, t); err != nil {
		l.Stop(ctx)
		return nil, err
	}
	return t, nil
}

func (l *Local) start(ctx context.Context, t *Target) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	l.port = port
	binary, err := exec.LookPath("nginx")
	if err != nil {
		binary, err = exec.LookPath("/usr/sbin/nginx") // Debian: not on a user's PATH
	}
	if err != nil || l.config.NoNginx {
		l.listen = port
		t.client = direct("tcp", port)
	} else {
		l.listen = "unix:" + filepath.Join(l.dir, "backend.sock")
		t.client = direct("unix", filepath.Join(l.dir, "backend.sock"))
	}
	if err := l.startBackend(l.config.Env); err != nil {
		return err
	}
	l.client = t.client
	if err := l.ready(ctx, t.client, "http://backend/readyz", func() *child.Child { return l.backend }); err != nil {
		return err
	}
	t.URL = "http://" + port
	if l.listen == port {
		return nil
	}
	return l.startNginx(ctx, binary)
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func (l *Local) startBackend(extra []string) error {
	env := append(os.Environ(), "LISTEN="+l.listen, "NOOP_INTERVAL="+l.config.NoopInterval.String(), "BACKEND_TOKEN="+l.token)
	b, err := child.Start(child.Spec{
		Name: "backend", Path: l.config.Backend, Log: filepath.Join(l.config.LogDir, "backend.log"),
		Env: append(env, extra...), Orphan: syscall.SIGTERM,
	})
	if err != nil {
		return fmt.Errorf("%w; `make build` makes it", err)
	}
	l.mu.Lock()
	l.backend = b
	l.mu.Unlock()
	l.watcher.Add(1)
	go l.watch(b)
	return nil
}

// watch restarts a backend that dies, as any service manager would, without the faults it was
// given: a soak has to survive it, and to tell of it.
func (l *Local) watch(b *child.Child) {
	defer l.watcher.Done()
	<-b.Done()
	l.mu.Lock()
	stopping := l.stopping
	if !stopping {
		l.deaths = append(l.deaths, fmt.Sprintf("the backend died at %s UTC (%v) and was restarted",
			time.Now().UTC().Format(time.TimeOnly), b.Err()))
	}
	again := len(l.deaths) <= 10
	l.mu.Unlock()
	if stopping || !again {
		return
	}
	time.Sleep(500 * time.Millisecond) // RestartSec
	l.mu.Lock()
	stopping = l.stopping
	l.mu.Unlock()
	if !stopping {
		if err := l.startBackend([]string{"BACKEND_FAULT="}); err != nil {
			l.mu.Lock()
			l.deaths = append(l.deaths, err.Error())
			l.mu.Unlock()
		}
	}
}

// Deaths says when and how the backend or nginx died on its own.
func (l *Local) Deaths() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.deaths...)
}

// Ready waits until the backend answers, which after a death takes a moment.
func (l *Local) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		l.mu.Lock()
		b := l.backend
		l.mu.Unlock()
		err := l.ready(ctx, l.client, "http://backend/readyz", func() *child.Child { return b })
		if err == nil || ctx.Err() != nil {
			return err
		}
		select { // it died; watch starts another
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// ready waits until url answers 200, the process dies or ctx ends.
func (l *Local) ready(ctx context.Context, client *http.Client, url string, process func() *child.Child) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var last error
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(resp.Status)
		}
		last = err
		p := process()
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended before it was ready (%v); %s says why", p.Name, p.Err(),
				filepath.Join(l.config.LogDir, p.Name+".log"))
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready within 15 s: %w", p.Name, last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (l *Local) startNginx(ctx context.Context, binary string) error {
	path := filepath.Join(l.dir, "nginx.conf")
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the configuration of nginx: %w", err)
	}
	log, err := filepath.Abs(filepath.Join(l.config.LogDir, "nginx.log"))
	if err != nil {
		return err
	}
	err = nginx.Render(f, nginx.Config{
		Dir: l.dir, ErrorLog: log, Listen: l.port, Socket: filepath.Join(l.dir, "backend.sock"),
		Root: os.Geteuid() == 0, Workers: runtime.NumCPU(),
		Connections: l.config.Connections, NoopInterval: l.config.NoopInterval,
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	l.nginx, err = child.Start(child.Spec{
		Name: "nginx", Path: binary, Args: []string{"-e", log, "-c", path}, Env: os.Environ(), Log: log, Orphan: syscall.SIGTERM,
	})
	if err != nil {
		return err
	}
	if v, err := exec.CommandContext(ctx, binary, "-v").CombinedOutput(); err == nil {
		l.Nginx = lastWord(string(v))
	}
	return l.ready(ctx, http.DefaultClient, "http://"+l.port+"/nginx-status", func() *child.Child { return l.nginx })
}

// BackendPID is the process of the backend as it is now.
func (l *Local) BackendPID() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backend == nil {
		return 0
	}
	return l.backend.PID()
}

// NginxPID is the master process of nginx, 0 without nginx.
func (l *Local) NginxPID() int {
	if l.nginx == nil {
		return 0
	}
	return l.nginx.PID()
}

// Stop ends the target in order, nginx first, and leaves nothing behind. When ctx ends it
// does not wait any longer and kills.
func (l *Local) Stop(ctx context.Context) {
	l.mu.Lock()
	l.stopping = true
	backend := l.backend
	l.mu.Unlock()
	if l.nginx != nil {
		l.nginx.Stop(ctx, syscall.SIGTERM, 5*time.Second)
	}
	if backend != nil {
		backend.Stop(ctx, syscall.SIGTERM, 10*time.Second)
	}
	l.watcher.Wait()
	_ = os.RemoveAll(l.dir)
}
