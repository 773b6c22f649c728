// Command gatewaysbench puts gateways for language models in front of the numbered model, one after the other on this
// machine, and writes a table of what arrives through each: when all is well, when the upstream fails, when clients
// leave or read slowly, and when the gateway is restarted. `make gateways-bench` runs it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/tools/page"
)

// direct is the model without a gateway.
const direct = "direct"

type bench struct {
	root, out string
	only      string // names with commas; "": all
	requests  int
	rate      float64
	streams   int
	upstream  string // URL of the model
	runID     string
	next      atomic.Int64 // number of the last request
}

func main() {
	b := bench{runID: fmt.Sprintf("bench-%d", time.Now().Unix())}
	flag.IntVar(&b.requests, "requests", 100, "requests per scenario")
	flag.Float64Var(&b.rate, "rate", 5, "requests per second")
	flag.IntVar(&b.streams, "streams", 100, "streams in flight whose memory is measured")
	flag.StringVar(&b.root, "root", ".", "the repository, with bin/ built")
	flag.StringVar(&b.out, "out", "results/gateways", "folder of the table and the figures")
	flag.StringVar(&b.only, "only", "", "these gateways alone, with commas: "+strings.Join(names(), ","))
	flag.Parse()
	page.Main("gatewaysbench", b.run)
}

func names() []string { return append([]string{direct}, services.Gateways()...) }

// run measures each gateway in turn, and writes the table after each.
func (b *bench) run(ctx context.Context) (err error) {
	chosen, err := page.Choose(b.only, names())
	if err != nil {
		return err
	}
	if b.requests < 2 || b.rate <= 0 || b.streams < 1 {
		return errors.New("-rate and -streams must be positive, and -requests at least 2")
	}
	if b.out, err = filepath.Abs(b.out); err != nil {
		return err
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	stop, err := b.startModel(ctx)
	if err != nil {
		return err
	}
	defer stop()
	r := report{Ran: page.Here(b.root), Date: time.Now().UTC(), Requests: b.requests, Rate: b.rate, Streams: b.streams, Load: page.LoadAverage()}
	for _, name := range chosen {
		page.Progress("%s …", name)
		g, err := b.measure(ctx, name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			page.Progress("%s: %v", name, err)
			g.Problem = err.Error()
		}
		r.Gateways = append(r.Gateways, g)
		if err := page.Save(filepath.Join(b.out, "gateways"), r, r.write); err != nil {
			return err
		}
	}
	return r.write(os.Stdout)
}

// startModel starts the model and returns the function that stops it.
func (b *bench) startModel(ctx context.Context) (stop func(), err error) {
	listen, err := address.Free()
	if err != nil {
		return nil, err
	}
	p, err := process.Start(process.Spec{
		Name: "the model", Path: filepath.Join(b.root, "bin", "backend"), Args: []string{"model", "--listen", listen},
		Log: filepath.Join(b.out, "model.log"), Orphan: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	b.upstream = "http://" + listen
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(b.upstream + "/healthz")
		if err == nil {
			_ = response.Body.Close()
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, fmt.Errorf("start the model: %w", err)
		}
	}
	return func() { p.Stop(context.WithoutCancel(ctx), syscall.SIGTERM, 15*time.Second) }, nil
}

// measure runs all scenarios on one gateway.
func (b *bench) measure(ctx context.Context, name string) (g *gateway, err error) {
	g = &gateway{Name: name}
	c, restart, stop, err := b.start(ctx, g)
	if err != nil {
		return g, err
	}
	defer stop()
	for range 3 { // the first answers of a gateway compile, import and connect
		c.request(ctx, fmt.Sprintf("%s-%d", b.runID, b.next.Add(1)), "chunks=5", 5, behaviour{})
	}
	for _, s := range scenarios() {
		if s.restart && name == direct {
			continue
		}
		first := b.next.Load() + 1
		responses, err := s.run(ctx, b, c, restart)
		if err != nil {
			return g, fmt.Errorf("scenario %s: %w", s.name, err)
		}
		records, err := b.records(ctx, first)
		if err != nil {
			return g, err
		}
		row := assess(s, responses, records)
		if g.usage != nil {
			if _, err := g.usage(); err != nil {
				row.Died = true
				if err := restart(); err != nil {
					return g, err
				}
			}
		}
		page.Progress("%s, %s: %s", name, s.name, row.states())
		g.Rows = append(g.Rows, row)
	}
	if name != direct {
		if g.StreamBytes, err = b.inFlight(ctx, c, g); err != nil {
			return g, fmt.Errorf("measure memory: %w", err)
		}
	}
	return g, nil
}

// start starts a gateway and makes a client of it.
func (b *bench) start(ctx context.Context, g *gateway) (c *client, restart func() error, stop func(), err error) {
	if g.Name == direct {
		return newClient(b.upstream, "", protocols["openai-chat"]), nil, func() {}, nil
	}
	r, err := services.Start(ctx, g.Name, services.Options{Upstream: b.upstream})
	if err != nil {
		return nil, nil, nil, err
	}
	g.Version, g.Settings, g.usage = r.Version, r.Settings, r.Usage
	p := protocols[strings.TrimSuffix(filepath.Base(r.Service), ".js")]
	return newClient(r.URL, r.SubscribeToken, p), func() error { return r.Restart(ctx) }, r.Stop, nil
}

// records reads the ledger of the requests from a number on, once all of them have ended at the upstream.
func (b *bench) records(ctx context.Context, first int64) (out []model.Record, err error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		open := 0
		if out, open, err = b.ledger(ctx, first); err != nil || open == 0 || time.Now().After(deadline) {
			return out, err
		}
	}
}

func (b *bench) ledger(ctx context.Context, first int64) (out []model.Record, open int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.upstream+"/ledger?prefix="+b.runID+"-", nil)
	if err != nil {
		return nil, 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("read the ledger: %w", err)
	}
	defer response.Body.Close()
	for decoder := json.NewDecoder(response.Body); ; {
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
