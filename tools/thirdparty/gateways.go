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
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
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
		return fmt.Errorf("-rate and -streams must be positive, and -requests at least 2, got %g, %d and %d", b.Rate, b.Streams, b.Requests)
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

type gateway struct {
	Name        string        `json:"name"`
	Version     string        `json:"version,omitempty"`
	Settings    string        `json:"settings,omitempty"`
	Problem     string        `json:"problem,omitempty"`
	StreamBytes float64       `json:"stream_bytes,omitempty"` // memory per stream in flight
	Rows        []scenarioRow `json:"scenarios"`

	usage func() (services.Usage, error)
}

// A scenarioRow has the figures of one scenario on one gateway.
type scenarioRow struct {
	Scenario         string                       `json:"scenario"`
	States           map[ledger.ResponseState]int `json:"states"`
	Ends             map[string]int               `json:"ended"` // number of bodies by response.End
	Lost             int                          `json:"lost"`  // chunks sent by the upstream and not received
	Duplicated       int                          `json:"duplicated"`
	Reordered        int                          `json:"reordered"`
	Corrupt          int                          `json:"corrupt"`
	Died             bool                         `json:"died,omitempty"` // the gateway's process ended
	CompleteWithLoss int                          `json:"silent"`         // complete responses with missing chunks
	Upstream         int                          `json:"upstream"`       // requests that the upstream received
	TTFT             quantiles                    `json:"ttft_ms"`
	Gap              quantiles                    `json:"inter_chunk_ms"`
	BurstShare       float64                      `json:"burst_share"` // share of gaps below ledger.TogetherLimit
	Cancel           quantiles                    `json:"cancel_ms"`
	Canceled         int                          `json:"cancelled"` // abandoned requests that the gateway canceled
	Unreceived       int                          `json:"wasted"`    // chunks sent for abandoned requests and not received
}

// quantiles are quantiles of times in milliseconds; all are zero if there are no times.
type quantiles struct{ P50, P99, Max float64 }

// quantilesOf returns the quantiles of times. It sorts times.
func quantilesOf(times []time.Duration) (q quantiles) {
	if len(times) == 0 {
		return q
	}
	slices.Sort(times)
	at := func(share float64) float64 {
		return float64(times[min(len(times)-1, int(share*float64(len(times))))]) / float64(time.Millisecond)
	}
	return quantiles{at(0.5), at(0.99), at(1)}
}

// assess compares the chunks that clients received with the chunks that the upstream sent. If the upstream received a
// request several times, assess uses the record with the most chunks.
func assess(s scenario, responses []*response, records []model.Record) scenarioRow {
	r := scenarioRow{Scenario: s.name, States: map[ledger.ResponseState]int{}, Ends: map[string]int{}, Upstream: len(records)}
	recordOf := map[string]model.Record{}
	for _, record := range records {
		if recordOf[record.ID].Sent <= record.Sent {
			recordOf[record.ID] = record
		}
	}
	var ttft, gaps, cancel []time.Duration
	bursts := 0
	for _, resp := range responses {
		r.States[resp.State]++
		record, known := recordOf[resp.ID]
		if resp.State == ledger.ResponseAbandoned {
			if known && record.DisconnectedUS > 0 {
				r.Canceled++
				cancel = append(cancel, max(0, time.UnixMicro(record.DisconnectedUS).Sub(resp.LeftAt)))
			}
			r.Unreceived += max(0, int(record.Sent)-int(resp.Chunks))
			continue
		}
		n := resp.Totals()
		r.Ends[resp.End]++
		r.Lost += max(0, int(record.Sent)-int(n.Received+n.Corrupted))
		r.Duplicated += int(n.Duplicated)
		r.Reordered += int(n.Reordered)
		r.Corrupt += int(n.Corrupted)
		if resp.State == ledger.ResponseComplete && int(n.Received) < resp.Expected {
			r.CompleteWithLoss++
		}
		if resp.Chunks > 0 {
			ttft = append(ttft, resp.First)
		}
		for _, us := range resp.Gaps {
			gap := time.Duration(us) * time.Microsecond
			if gap < ledger.TogetherLimit {
				bursts++
			}
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) > 0 {
		r.BurstShare = float64(bursts) / float64(len(gaps))
	}
	r.TTFT, r.Gap, r.Cancel = quantilesOf(ttft), quantilesOf(gaps), quantilesOf(cancel)
	return r
}

func (r scenarioRow) states() string { return counts(r.States) }

// counts lists the keys with their counts, the most frequent first.
func counts[K ~string](values map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b K) int {
		return cmp.Or(values[b]-values[a], strings.Compare(string(a), string(b)))
	})
	var out []string
	for _, key := range keys {
		out = append(out, fmt.Sprintf("%d %s", values[key], key))
	}
	return strings.Join(out, ", ")
}

func (b *gatewaysBench) write(w io.Writer) error {
	fmt.Fprintf(w, "%d requests per scenario (10 with slow clients), %g per second, one gateway at a time, load %.1f before. %s.\n",
		b.Requests, b.Rate, b.Load, page.Origin(b.RunInfo, b.Date))
	for _, g := range b.Gateways {
		if g.Problem != "" {
			fmt.Fprintf(w, "\n%s: %s\n", g.Name, g.Problem)
		}
	}
	for _, table := range []struct {
		columns string
		rows    [][]string
	}{
		{"scenario, gateway, states, bodies ended, complete (chunks missing), lost, duplicated, reordered, upstream requests", b.states()},
		{"gateway, TTFT (ms: p50 / p99), added TTFT (ms: p50), inter-chunk latency (ms: p50 / p99 / max), chunks that arrived together, KB per stream in flight", b.times()},
		{"gateway, clients that left, upstream canceled, time to cancel (ms: p50 / max), chunks sent after the client left", b.leavingRows()},
		{"gateway, version, settings", b.versions()},
	} {
		fmt.Fprintln(w)
		page.Table(w, strings.Split(table.columns, ", "), table.rows)
	}
	return page.WriteRunInfo(w, b.RunInfo)
}

func (b *gatewaysBench) states() (rows [][]string) {
	for _, s := range scenarios() {
		for _, g := range b.Gateways {
			for _, row := range g.Rows {
				if row.Scenario != s.name {
					continue
				}
				states := row.states()
				if row.Died {
					states += "; the gateway died"
				}
				rows = append(rows, []string{
					s.name, g.Name, states, counts(row.Ends), fmt.Sprint(row.CompleteWithLoss), fmt.Sprint(row.Lost), fmt.Sprint(row.Duplicated), fmt.Sprint(row.Reordered), fmt.Sprint(row.Upstream),
				})
			}
		}
	}
	return rows
}

// times returns the rows of the table of times and memory. The times are from the clean scenario.
func (b *gatewaysBench) times() (rows [][]string) {
	var base scenarioRow
	for _, g := range b.Gateways {
		if len(g.Rows) == 0 {
			continue
		}
		row, addedLatency, memory := g.Rows[0], "", ""
		if g.Name == direct {
			base = row
		} else if base.Scenario != "" {
			addedLatency = fmt.Sprintf("%.1f", row.TTFT.P50-base.TTFT.P50)
		}
		if g.StreamBytes > 0 {
			memory = fmt.Sprintf("%.0f", g.StreamBytes/1024)
		}
		rows = append(rows, []string{
			g.Name, fmt.Sprintf("%.1f / %.1f", row.TTFT.P50, row.TTFT.P99), addedLatency,
			fmt.Sprintf("%.1f / %.1f / %.1f", row.Gap.P50, row.Gap.P99, row.Gap.Max), fmt.Sprintf("%.0f %%", 100*row.BurstShare), memory,
		})
	}
	return rows
}

func (b *gatewaysBench) leavingRows() (rows [][]string) {
	for _, g := range b.Gateways {
		for _, row := range g.Rows {
			if row.States[ledger.ResponseAbandoned] > 0 {
				rows = append(rows, []string{
					g.Name, fmt.Sprint(row.States[ledger.ResponseAbandoned]), fmt.Sprint(row.Canceled), fmt.Sprintf("%.1f / %.1f", row.Cancel.P50, row.Cancel.Max), fmt.Sprint(row.Unreceived),
				})
			}
		}
	}
	return rows
}

func (b *gatewaysBench) versions() (rows [][]string) {
	for _, g := range b.Gateways {
		if g.Version != "" {
			rows = append(rows, []string{g.Name, g.Version, g.Settings})
		}
	}
	return rows
}
