package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/test/services"
)

// own is our backend, which is soaked like those of others.
const own = "backend"

// bare follows the name of a service without history: the result of a reconnect is then different.
const bare = "-without-history"

func names() []string { return append(services.Names(), own) }

// A contender is a service that runs.
type contender struct {
	url, service      string
	env               []string
	version, settings string
	usage             func() (services.Usage, error)
	stop              func()
}

func (b *bench) start(ctx context.Context, name string) (*contender, error) {
	if name == own {
		return b.startOwn(ctx)
	}
	o := services.Options{Streams: b.Connections + 1000}
	service, without := strings.CutSuffix(name, bare)
	if without {
		o.History = -1
	}
	r, err := services.Start(ctx, service, o)
	if err != nil {
		return nil, err
	}
	return &contender{r.URL, r.Service, r.Env, r.Version, r.Settings, r.Usage, r.Stop}, nil
}

// startOwn starts the backend without nginx: the others are asked directly, too.
func (b *bench) startOwn(ctx context.Context) (*contender, error) {
	logs := filepath.Join(b.out, own+"-log")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	t, err := target.StartLocal(ctx, target.LocalConfig{
		Backend: filepath.Join(b.root, "bin", "backend"), Connections: b.Connections, LogDir: logs, NoNginx: true,
		NoopInterval: time.Duration(b.interval() * float64(time.Second)),
	})
	if err != nil {
		return nil, err
	}
	return &contender{
		url: t.URL, service: "noop", env: []string{"BACKEND_TOKEN=" + t.Token},
		version: "of this commit, " + runtime.Version(), settings: fmt.Sprintf("a noop every %g s on every stream, without topics and publisher", b.interval()),
		usage: func() (services.Usage, error) { return services.UsageOf(own, t.Local.BackendPIDs()) },
		stop:  func() { t.Local.Stop(context.WithoutCancel(ctx)) },
	}, nil
}
