package target

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/nginx"
)

// A LocalConfig has the settings of a target on this machine.
type LocalConfig struct {
	Backend          string // path of the binary
	Connections      int    // number of streams, for the limits of nginx
	PlainConnections int    // concurrent connections that are not streams; 0: the default of the backend
	NoopInterval     time.Duration
	LogDir           string
	NoNginx          bool            // no nginx, even if it is installed
	RequireHTTP2     bool            // the runners use HTTP/2, which requires nginx
	Backends         int             // number of backends; 0 means 1, and more than one requires nginx
	Token            string          // required by the backend; "": a random one
	Suffix           string          // of the names of processes and logs, if there are several targets
	CPUs             process.CPUList // CPUs of the target's processes; empty: all
	Certificates     Certificates    // if set, the backend itself uses mutual TLS, without nginx
	Model            bool            // the backend is the numbered model, without nginx
}

// A Local is one or several backends on unix sockets behind nginx or, without nginx, one backend on a TCP port. A
// backend reads its other settings (BACKEND_FAULT, NOOP_SCHEDULE, …) from our environment.
type Local struct {
	Nginx string // version; "": the runners connect to the backend itself

	config   LocalConfig
	folder   *folder
	address  string // address for the runners, HOST:PORT
	backends []*backend
	nginx    *supervisor // nil without nginx
}

// StartLocal starts a target on this machine and waits until it is ready. After an error none of its processes runs.
func StartLocal(ctx context.Context, c LocalConfig) (*Target, error) {
	c.Token = cmp.Or(c.Token, rand.Text())
	folder, err := newFolder()
	if err != nil {
		return nil, err
	}
	l := &Local{config: c, folder: folder}
	if err := l.start(ctx); err != nil {
		l.Stop(ctx)
		return nil, err
	}
	url := "http://" + l.address
	if c.Certificates != "" {
		_, port, _ := strings.Cut(l.address, ":")
		url = "https://" + secureName + ":" + port
	}
	return &Target{URL: url, Token: c.Token, Local: l, base: "http://backend", client: l.backends[0].client}, nil
}

func (l *Local) start(ctx context.Context) (err error) {
	if l.address, err = freeAddress(); err != nil {
		return err
	}
	if err := l.config.Check(); err != nil {
		return err
	}
	direct := l.config.isDirect()
	for n := 1; n <= max(l.config.Backends, 1); n++ {
		if err := l.addBackend(ctx, n, direct); err != nil {
			return err
		}
	}
	if direct {
		return nil
	}
	return l.startNginx(ctx, nginxBinary())
}

// Check returns an error if this machine cannot start a target with these settings.
func (c LocalConfig) Check() error {
	switch {
	case !c.isDirect():
		return nil
	case c.Backends > 1:
		return errors.New("several backends require nginx in front of them; remove --no-nginx, and install nginx (apt-get install nginx-light)")
	case c.RequireHTTP2:
		return errors.New("HTTP/2 requires nginx in front of the backend; remove --no-nginx, and install nginx (apt-get install nginx-light)")
	}
	return nil
}

func (c LocalConfig) isDirect() bool {
	return nginxBinary() == "" || c.NoNginx || c.Certificates != "" || c.Model
}

func nginxBinary() string {
	path, _ := process.Find("nginx")
	return path
}

// freeAddress returns a random loopback address with a free port, as HOST:PORT. With a fixed address, two soak
// processes could choose the same port at the same time, and one would test the other's target. The fallback is for
// macOS, which has only one loopback address.
func freeAddress() (string, error) {
	var octets [3]byte
	_, _ = rand.Read(octets[:]) // never fails
	return freeAddressOf(net.IPv4(127, 1+octets[0]%254, octets[1], 1+octets[2]%254).String(), "127.0.0.1")
}

// freeAddressOf returns the first of the hosts that is an address of this machine, with a free port, as HOST:PORT.
func freeAddressOf(hosts ...string) (string, error) {
	var errs []error
	for _, host := range hosts {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err == nil {
			return listener.Addr().String(), listener.Close()
		}
		errs = append(errs, fmt.Errorf("find a free port: %w", err))
	}
	return "", errors.Join(errs...)
}

func (l *Local) logPath(name string) string {
	return filepath.Join(l.config.LogDir, name+l.config.Suffix+".log")
}

func (l *Local) startNginx(ctx context.Context, binary string) error {
	conf := l.configurationPath()
	f, err := os.Create(conf) // #nosec G304 -- in our folder
	if err != nil {
		return fmt.Errorf("write the configuration of nginx: %w", err)
	}
	log, err := filepath.Abs(l.logPath("nginx"))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	var sockets []string
	for n := range l.backends {
		sockets = append(sockets, l.socket(n+1))
	}
	err = nginx.Render(f, nginx.Config{
		Dir: l.folder.path, ErrorLog: log, Listen: l.address, Sockets: sockets,
		Root: os.Geteuid() == 0, Workers: cmp.Or(len(l.config.CPUs), runtime.NumCPU()),
		Connections: l.config.Connections, NoopInterval: l.config.NoopInterval,
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	l.nginx = newSupervisor("nginx"+l.config.Suffix, func(bool) (*process.Process, error) {
		return process.Start(process.Spec{
			Name: "nginx", Path: binary, Args: []string{"-e", log, "-c", conf}, Env: os.Environ(), Log: log, OrphanSignal: syscall.SIGTERM, CPUs: l.config.CPUs,
		})
	})
	if err := l.nginx.start(false); err != nil {
		return err
	}
	l.Nginx = "nginx"
	if text, err := exec.CommandContext(ctx, binary, "-v").CombinedOutput(); err == nil {
		l.Nginx = versionOf(string(text))
	}
	return l.await(ctx, l.nginx, http.DefaultClient, "http://"+l.address+"/nginx-status")
}

// await waits until url returns 200 or the process exits, at most 15 s.
func (l *Local) await(ctx context.Context, s *supervisor, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		err := requireOK(ctx, client, url)
		if err == nil {
			return nil
		}
		select {
		case <-s.current().Done():
			return fmt.Errorf("%s ended before it was ready (%s); see the logs in %s", s.name, exitText(s.current().Err()), l.config.LogDir)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("start %s: %w", s.name, ctx.Err())
			}
			return fmt.Errorf("%s was not ready in time: %w", s.name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func requireOK(ctx context.Context, client *http.Client, url string) error {
	resp, err := get(ctx, client, url, "")
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// Crashes returns the crashes of the processes of the target.
func (l *Local) Crashes() (crashes []Crash) {
	for _, b := range l.backends {
		crashes = append(crashes, b.crashList()...)
	}
	if l.nginx != nil {
		crashes = append(crashes, l.nginx.crashList()...)
	}
	return crashes
}

// NginxPID returns the process id of the nginx master; 0 without nginx.
func (l *Local) NginxPID() int {
	if l.nginx == nil {
		return 0
	}
	return l.nginx.current().PID()
}

// NginxLog returns the path of the error log of nginx.
func (l *Local) NginxLog() string { return l.logPath("nginx") }

// NginxConfiguration returns the path of the configuration of nginx; "" without nginx.
func (l *Local) NginxConfiguration() string {
	if l.nginx == nil {
		return ""
	}
	return l.configurationPath()
}

func (l *Local) configurationPath() string { return filepath.Join(l.folder.path, "nginx.conf") }

// BackendPIDs returns the current process ids of the backends.
func (l *Local) BackendPIDs() (out []int) {
	for _, b := range l.backends {
		out = append(out, b.current().PID())
	}
	return out
}

// NginxStatus returns the status page of nginx; ok is false without nginx, or if nginx does not respond.
func (l *Local) NginxStatus(ctx context.Context) (page io.ReadCloser, ok bool) {
	if l.nginx == nil {
		return nil, false
	}
	return openPage(ctx, http.DefaultClient, "http://"+l.address+"/nginx-status", "")
}

// Stop ends the target in order, nginx first, and removes its files. It kills a process that does not end in time, and
// all remaining ones when ctx ends.
func (l *Local) Stop(ctx context.Context) {
	if l.nginx != nil {
		l.nginx.stop(ctx, 5*time.Second)
	}
	for _, b := range l.backends {
		b.stop(ctx, 10*time.Second)
	}
	l.folder.remove()
}

var nginxVersion = regexp.MustCompile(`nginx/\S+`)

func versionOf(s string) string { return cmp.Or(nginxVersion.FindString(s), "nginx") }
