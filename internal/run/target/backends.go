package target

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

// Limits of a backend's connections that are not streams.
const (
	defaultPlain = 4096 // default of the backend if it has enough descriptors
	sparePlain   = 64   // connections for health checks and the end of streams, in addition to the plan's
)

// A backend is one of the processes behind nginx, or the only process of a target without nginx.
type backend struct {
	*supervisor
	name   string // value of the response header X-Server
	listen string
	client *http.Client
}

// addBackend starts the nth backend, from 1, and waits until it is ready. If atPort is set, the backend listens at the
// address for the runners, otherwise on its own socket.
func (l *Local) addBackend(ctx context.Context, n int, atPort bool) error {
	b := &backend{name: fmt.Sprintf("backend-%d", n)}
	if atPort {
		b.listen, b.client = l.address, clientOf("tcp", l.address, new(net.Dialer).DialContext)
	} else {
		b.listen, b.client = "unix:"+l.socket(n), clientOf("unix", l.socket(n), new(net.Dialer).DialContext)
	}
	if l.config.Certificates != "" {
		var err error
		if b.client, err = l.config.Certificates.directClient(l.address); err != nil {
			return err
		}
	}
	name := "the backend"
	switch {
	case l.config.Backends > 1:
		name = b.name + l.config.Suffix
	case l.config.Suffix != "": // one of several targets, each with a backend
		b.name = "backend" + l.config.Suffix
		name = b.name
	}
	b.supervisor = newSupervisor(name, func(restart bool) (*process.Process, error) { return l.startBackend(b, restart) })
	l.backends = append(l.backends, b)
	if err := b.start(false); err != nil {
		return err
	}
	return l.await(ctx, b.supervisor, b.client, l.readinessURL())
}

func (l *Local) socket(n int) string {
	return filepath.Join(l.folder.path, fmt.Sprintf("backend-%d.sock", n))
}

// startBackend starts a backend. A restarted backend does not inject the faults (BACKEND_FAULT) again.
func (l *Local) startBackend(b *backend, restart bool) (*process.Process, error) {
	var args []string
	if l.config.Model {
		args = []string{"model"}
	}
	env := append(os.Environ(), "LISTEN="+b.listen, "MODEL_LISTEN="+b.listen, "NOOP_INTERVAL="+l.config.NoopInterval.String(), "BACKEND_TOKEN="+l.config.Token, "SERVER_NAME="+b.name)
	if l.config.Certificates != "" {
		env = append(env, l.config.Certificates.backendEnv()...)
	}
	if plain := l.config.PlainConnections + sparePlain; plain > defaultPlain {
		env = append(env, "MAX_PLAIN_CONNECTIONS="+strconv.Itoa(plain))
	}
	if restart {
		env = append(env, "BACKEND_FAULT=")
	}
	log := "backend"
	if l.config.Backends > 1 {
		log = b.name
	}
	c, err := process.Start(process.Spec{
		Name: b.supervisor.name, Path: l.config.Backend, Args: args, Log: l.logPath(log), Env: env, OrphanSignal: syscall.SIGTERM, CPUs: l.config.CPUs,
	})
	if _, statErr := os.Stat(l.config.Backend); err != nil && statErr != nil {
		err = fmt.Errorf("%w; build the backend with `make build`", err)
	}
	return c, err
}

func (l *Local) readinessURL() string {
	if l.config.Model {
		return "http://backend/healthz"
	}
	return "http://backend/readyz"
}

func (l *Local) ready(ctx context.Context) error {
	for _, b := range l.backends {
		if err := awaitAnswer(ctx, b.supervisor.name, func() error { return requireOK(ctx, b.client, l.readinessURL()) }); err != nil {
			return err
		}
	}
	return nil
}

// Backends returns each backend as a target that bypasses nginx. For a remote target it returns the target itself.
func (t *Target) Backends() Targets {
	if t.Local == nil {
		return Targets{t}
	}
	var out Targets
	for _, b := range t.Local.backends {
		out = append(out, &Target{URL: t.URL, Token: t.Token, base: t.base, client: b.client})
	}
	return out
}
