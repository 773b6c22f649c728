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

// backend is the name of the backend of this repository, which is measured like the other services.
const backend = "backend"

// bareSuffix ends the name of a service that is started without history.
const bareSuffix = "-without-history"

// traits contains the cells about each service's heartbeats, the end of its streams, and how they resume. In test/e2e,
// TestResumeOfThirdPartyServices checks how streams resume.
var traits = map[string][]string{
	"nchan":   {"event `ping`, 30 s", "no", "by `Last-Event-ID`; omits messages silently if its buffer is too short"},
	"mercure": {"comment, 40 s", "after 475 to 600 s", "by `Last-Event-ID`; reports a gap"},
	"django-eventstream": {
		"event `keep-alive`, 20 s", "no",
		"by `Last-Event-ID`; reports a gap; may repeat messages that are published during the reconnect",
	},
	"pocketbase":    {"none", "after 300 to 1800 s", "no"},
	"sse-starlette": {"comment, 15 s", "no", "no"},
	backend: {
		"none; noops are messages", "on request of the client",
		"by `Last-Event-ID`: numbers continue, noops of the outage are created again",
	},
}

// A contender is a running service, with the settings of its soak.
type contender struct {
	url, service      string
	env               []string
	version, settings string
	usage             func() (services.Usage, error)
	stop              func()
}

// launch starts a service. If the name ends with bareSuffix, the service has no history.
func (b *servicesBench) launch(ctx context.Context, name string) (*contender, error) {
	if name == backend {
		return b.startBackend(ctx)
	}
	o := services.Options{Streams: b.Load.Connections + 1000}
	service, withoutHistory := strings.CutSuffix(name, bareSuffix)
	if withoutHistory {
		o.History = -1
	}
	r, err := services.Start(ctx, service, o)
	if err != nil {
		return nil, err
	}
	return &contender{r.URL, r.Service, r.Env, r.Version, r.Settings, r.Usage, r.Stop}, nil
}

// startBackend starts the backend without nginx, because the other services have no proxy.
func (b *servicesBench) startBackend(ctx context.Context) (*contender, error) {
	logs := filepath.Join(b.out, backend+"-log")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	t, err := target.StartLocal(ctx, target.LocalConfig{
		Backend: filepath.Join(b.root, "bin", "backend"), Connections: b.Load.Connections, LogDir: logs, NoNginx: true,
		NoopInterval: time.Duration(b.Load.interval() * float64(time.Second)),
	})
	if err != nil {
		return nil, err
	}
	return &contender{
		url: t.URL, service: "noop", env: []string{"BACKEND_TOKEN=" + t.Token},
		version: "of this commit, " + runtime.Version(), settings: fmt.Sprintf("a noop every %g s on every stream, no topics, no publisher", b.Load.interval()),
		usage: func() (services.Usage, error) { return services.UsageOf(backend, t.Local.BackendPIDs()) },
		stop:  func() { t.Local.Stop(context.WithoutCancel(ctx)) },
	}, nil
}
