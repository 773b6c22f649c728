package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/tools/page"
)

// direct is the name under which the model without a gateway is measured.
const direct = "direct"

// A gatewaysBench compares gateways by the chunks that clients receive through them, in several scenarios.
type gatewaysBench struct {
	*options
	Requests int        `json:"requests"`
	Rate     float64    `json:"rate"`
	Streams  int        `json:"streams"`
	Load     float64    `json:"load"` // load average of the machine before the benchmark
	Gateways []*gateway `json:"gateways"`

	upstream    string       // URL of the model
	runID       string       // prefix of the ids of all requests
	lastRequest atomic.Int64 // number of the last request
}

func (b *gatewaysBench) declare(flags *flag.FlagSet) {
	flags.IntVar(&b.Requests, "requests", 100, "requests per scenario")
	flags.Float64Var(&b.Rate, "rate", 5, "requests per second")
	flags.IntVar(&b.Streams, "streams", 100, "streams in flight whose memory is measured")
}

func (b *gatewaysBench) names() (standard, extra []string) {
	return append([]string{direct}, services.Gateways()...), nil
}

func (b *gatewaysBench) check() error {
	if b.Requests < 2 || b.Rate <= 0 || b.Streams < 1 {
		return errors.New("-rate and -streams must be positive, and -requests at least 2")
	}
	return nil
}

func (b *gatewaysBench) start(ctx context.Context) (stop func(), err error) {
	b.runID, b.Load = fmt.Sprintf("bench-%d", b.Date.Unix()), page.LoadAverage()
	t, err := target.StartLocal(ctx, target.LocalConfig{Backend: filepath.Join(b.root, "bin", "backend"), Model: true, LogDir: b.out})
	if err != nil {
		return nil, err
	}
	b.upstream = t.URL
	return func() { t.Local.Stop(context.WithoutCancel(ctx)) }, nil
}

func (b *gatewaysBench) measure(ctx context.Context, name string) string {
	g := &gateway{Name: name}
	b.Gateways = append(b.Gateways, g)
	if err := b.fill(ctx, g); err != nil {
		g.Problem = err.Error()
		return g.Problem
	}
	return fmt.Sprintf("%d scenarios", len(g.Rows))
}

// fill runs all scenarios on one gateway, and then measures the memory per stream. It restarts a gateway whose process
// has ended. For direct, it omits the scenario with a restart, and the memory.
func (b *gatewaysBench) fill(ctx context.Context, g *gateway) error {
	c, restart, stop, err := b.launch(ctx, g)
	if err != nil {
		return err
	}
	defer stop()
	for range 3 { // the first responses are slow, because a gateway compiles, imports and connects
		c.do(ctx, fmt.Sprintf("%s-%d", b.runID, b.lastRequest.Add(1)), "chunks=5", 5, behavior{})
	}
	for _, s := range scenarios() {
		if s.restart && g.Name == direct {
			continue
		}
		first := b.lastRequest.Load() + 1
		responses, err := s.run(ctx, b, c, restart)
		if err != nil {
			return fmt.Errorf("scenario %s: %w", s.name, err)
		}
		records, err := b.records(ctx, first)
		if err != nil {
			return err
		}
		row := assess(s, responses, records)
		if g.usage != nil {
			if _, err := g.usage(); err != nil {
				row.Died = true
				if err := restart(); err != nil {
					return err
				}
			}
		}
		page.Progress("%s, %s: %s", g.Name, s.name, row.states())
		g.Rows = append(g.Rows, row)
	}
	if g.Name != direct {
		if g.StreamBytes, err = b.memoryPerStream(ctx, c, g); err != nil {
			return fmt.Errorf("measure memory: %w", err)
		}
	}
	return nil
}

// launch starts a gateway, and returns a client and functions to restart and stop it. restart is nil for direct.
func (b *gatewaysBench) launch(ctx context.Context, g *gateway) (c *client, restart func() error, stop func(), err error) {
	if g.Name == direct {
		return newClient(ctx, b.upstream, "", protocols["openai-chat"]), nil, func() {}, nil
	}
	r, err := services.Start(ctx, g.Name, services.Options{Upstream: b.upstream})
	if err != nil {
		return nil, nil, nil, err
	}
	g.Version, g.Settings, g.usage = r.Version, r.Settings, r.Usage
	p := protocols[strings.TrimSuffix(filepath.Base(r.Service), ".js")]
	return newClient(ctx, r.URL, r.SubscribeToken, p), func() error { return r.Restart(ctx) }, r.Stop, nil
}

// recordsTimeout is the maximum time until all requests have ended at the upstream. Tests shorten it.
var recordsTimeout = time.Minute

// records waits until the requests from number first on have ended at the upstream, and returns their records. After
// recordsTimeout, it returns an error, because records of open requests are incomplete.
func (b *gatewaysBench) records(ctx context.Context, first int64) ([]model.Record, error) {
	for deadline := time.Now().Add(recordsTimeout); ; time.Sleep(100 * time.Millisecond) {
		out, open, err := b.ledger(ctx, first)
		if err != nil || open == 0 {
			return out, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("wait for the model: %s still open", format.Plural(open, "request is", "requests are"))
		}
	}
}

// ledger returns the records of the requests from number first on, and the number of requests that have not ended.
func (b *gatewaysBench) ledger(ctx context.Context, first int64) (out []model.Record, open int, err error) {
	var text bytes.Buffer
	if found, err := target.Remote(b.upstream, "").ModelLedger(ctx, b.runID+"-", &text); err != nil || !found {
		return nil, 0, fmt.Errorf("read the ledger: %w", cmp.Or(err, errors.New("the model has no ledger")))
	}
	for decoder := json.NewDecoder(&text); ; {
		var r model.Record
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			return out, open, nil
		} else if err != nil {
			return nil, 0, fmt.Errorf("read the ledger: %w", err)
		}
		var n int64
		if _, err := fmt.Sscanf(strings.TrimPrefix(r.ID, b.runID+"-"), "%d", &n); err != nil || n < first {
			continue
		}
		if r.Ended == 0 {
			open++
		}
		out = append(out, r)
	}
}
