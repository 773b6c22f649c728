package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model/numbered"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// Limits of a response.
const (
	idleLimit   = 20 * time.Second // maximum time without a byte
	lingerLimit = 2 * time.Second  // maximum time without a byte between the terminal event and the end of the body
)

type protocol struct {
	path   string
	body   func(instruction string) any
	failed func(data []byte) bool // reports whether the data of an event is an error
}

// protocols lists the protocols by the name of their service description.
var protocols = map[string]protocol{
	"openai-chat": {
		path: "/v1/chat/completions",
		body: func(instruction string) any {
			return map[string]any{
				"model": "numbered", "stream": true, "messages": []any{map[string]any{"role": "user", "content": instruction}},
			}
		},
		failed: func(data []byte) bool { return bytes.HasPrefix(data, []byte(`{"error"`)) },
	},
	"ai-sdk": {
		path: "/api/chat",
		body: func(instruction string) any {
			part := map[string]any{"type": "text", "text": instruction}
			return map[string]any{
				"id": "chat", "messages": []any{map[string]any{"id": "1", "role": "user", "parts": []any{part}}},
			}
		},
		failed: func(data []byte) bool { return bytes.HasPrefix(data, []byte(`{"type":"error"`)) },
	},
}

// A response records the part of one response that a client received.
type response struct {
	ledger.Response
	ID       string
	End      string    // how the body ended: "in order", "cut", "open", a status, or another sseclient.Reason
	Expected int       // number of requested chunks
	LeftAt   time.Time // when the client left; zero: it did not leave

	client  *client
	request sseclient.Request
	stream  *sseclient.Stream
	start   time.Time
	done    bool // the terminal event arrived
	behavior
}

// A client requests responses from one gateway.
type client struct {
	url, token string
	protocol
	streams *sseclient.Group
}

// newClient returns a client of the gateway at url. token is the bearer token of all requests; "": none.
func newClient(ctx context.Context, url, token string, p protocol) *client {
	return &client{url, token, p, (&sseclient.Client{UserAgent: "sse-soak"}).Group(ctx)}
}

// A behavior is an action of a client other than reading.
type behavior struct {
	leaveAfter int           // number of chunks after which the client leaves; 0: never
	pauseAfter int           // number of chunks after which the client stops reading; 0: never
	pause      time.Duration // time without reading
	onFirst    func()        // called at the first chunk; nil: nothing
}

var responseOptions = sseclient.Options{ConnectTimeout: idleLimit, IdleTimeout: idleLimit, LateHeader: true}

// do requests a response of n chunks, and returns when the response has ended or the client has left.
func (c *client) do(ctx context.Context, id, instruction string, n int, b behavior) *response {
	body, err := json.Marshal(c.body("soak id=" + id + " " + instruction))
	if err != nil {
		panic(err) // the body consists of maps, slices, strings and booleans
	}
	r := &response{ID: id, Expected: n, client: c, behavior: b, start: time.Now()}
	r.request = sseclient.Request{
		URL: c.url + c.path, Method: http.MethodPost, Body: string(body), Header: http.Header{"Content-Type": {"application/json"}},
	}
	if c.token != "" {
		r.request.Header.Set("Authorization", "Bearer "+c.token)
	}
	finished := make(chan struct{})
	r.stream = c.streams.Add(&responseOptions, &sseclient.Callbacks{
		Request:  func(*sseclient.Stream) sseclient.Request { return r.request },
		Block:    func(_ *sseclient.Stream, at time.Time, block *eventstream.Block) { r.onBlock(at, block) },
		Closed:   func(_ *sseclient.Stream, at time.Time, end sseclient.Close) { r.onClosed(at, end) },
		Ended:    func(*sseclient.Stream) { close(finished) },
		Cuttable: func(*sseclient.Stream) bool { return b.pauseAfter > 0 },
	}, nil)
	defer context.AfterFunc(ctx, func() { r.stream.Stop(sseclient.ReasonClient) })()
	r.stream.Start()
	<-finished
	return r
}

// onBlock counts a block of the response. The data of one block may contain several numbered chunks.
func (r *response) onBlock(at time.Time, b *eventstream.Block) {
	if !b.HasData || !r.LeftAt.IsZero() {
		return
	}
	elapsed := at.Sub(r.start)
	chunk := ledger.Chunk{At: elapsed, Done: string(b.Data) == "[DONE]", Failed: r.client.failed(b.Data)}
	token, remaining, found := numbered.Next(b.Data)
	if !found {
		r.Block(&chunk)
	}
	for ; found; token, remaining, found = numbered.Next(remaining) {
		if r.Chunks == 0 && r.onFirst != nil {
			r.onFirst()
		}
		r.Block(&ledger.Chunk{At: elapsed, Content: true})
		// With a total of 0, the terminal event alone decides whether the response is complete.
		r.AddNumber(uint64(token.K), 0, token.Valid(r.ID))
	}
	switch {
	case chunk.Done && !r.done:
		r.done = true
		r.stream.KeepConnection()
		r.stream.SetIdleTimeout(lingerLimit)
	case r.leaveAfter > 0 && int(r.Chunks) >= r.leaveAfter:
		r.LeftAt = time.Now()
		r.stream.Stop(sseclient.ReasonClient)
	case r.pauseAfter > 0 && int(r.Chunks) >= r.pauseAfter:
		r.pauseAfter = 0
		r.stream.Cut(sseclient.CutPause, r.pause)
	}
}

func (r *response) onClosed(at time.Time, c sseclient.Close) {
	closing := ledger.ClosedBroken
	switch {
	case !r.LeftAt.IsZero():
		closing = ledger.ClosedOnPurpose
	case !c.Opened:
		closing = ledger.NeverOpened
	case c.Reason == sseclient.ReasonServer:
		closing = ledger.ClosedInOrder
	case c.Reason == sseclient.ReasonIdle:
		closing = ledger.ClosedSilent
	}
	switch r.End = string(c.Reason); c.Reason {
	case sseclient.ReasonServer:
		r.End = "in order"
	case sseclient.ReasonTruncated:
		r.End = "cut"
	case sseclient.ReasonIdle:
		r.End = "open"
	case sseclient.ReasonStatus:
		r.End = http1.StatusText(c.Status)
	}
	r.Close(at.Sub(r.start), closing)
}

// A scenario is a load on a gateway. Its results fill one scenarioRow.
type scenario struct {
	name     string
	chunks   int
	order    string // parameters of the numbered model other than id and chunks
	requests int    // number of requests; 0: the default of the benchmark
	behavior
	restart bool // restarts the gateway after half of the requests
}

// faultChunk is the number of the chunk at which a fault applies, or a client leaves or pauses.
const faultChunk = 20

// scenarios returns all scenarios in the order of the page. The first one has no fault.
func scenarios() []scenario {
	return []scenario{
		{name: "clean", chunks: 40, order: "delay=10ms"},
		{name: "upstream truncates", chunks: 40, order: fmt.Sprintf("delay=10ms fault=truncate@%d", faultChunk)},
		{name: "upstream resets", chunks: 40, order: fmt.Sprintf("delay=10ms fault=reset@%d", faultChunk)},
		{name: "error inside", chunks: 40, order: fmt.Sprintf("delay=10ms fault=error@%d", faultChunk)},
		{name: "client leaves", chunks: 400, order: "delay=10ms", behavior: behavior{leaveAfter: faultChunk}},
		{
			name: "slow client", chunks: 400, order: "delay=5ms size=4000", requests: 10,
			behavior: behavior{pauseAfter: faultChunk, pause: 5 * time.Second},
		},
		{name: "gateway restarted", chunks: 100, order: "delay=10ms", restart: true},
	}
}

// run sends the requests of a scenario at a constant rate, and waits until all have ended.
func (s scenario) run(ctx context.Context, b *gatewaysBench, c *client, restart func() error) (out []*response, err error) {
	n := s.requests
	if n == 0 {
		n = b.Requests
	}
	order := fmt.Sprintf("chunks=%d %s", s.chunks, s.order)
	out = make([]*response, n)
	var wait sync.WaitGroup
	start := time.Now()
	restartResult := make(chan error, 1)
	for i := range n {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Until(start.Add(time.Duration(float64(i) / b.Rate * float64(time.Second))))):
		}
		if s.restart && i == n/2 {
			go func() { restartResult <- restart() }()
		}
		wait.Go(func() {
			out[i] = c.do(ctx, fmt.Sprintf("%s-%d", b.runID, b.lastRequest.Add(1)), order, s.chunks, s.behavior)
		})
	}
	wait.Wait()
	if s.restart {
		err = <-restartResult
	}
	return out, err
}

// memoryPerStream opens b.Streams streams at once, and returns the memory that the gateway uses per stream, in bytes.
func (b *gatewaysBench) memoryPerStream(ctx context.Context, c *client, g *gateway) (perStream float64, err error) {
	idle, err := g.usage()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait, open sync.WaitGroup
	open.Add(b.Streams)
	for i := range b.Streams {
		wait.Go(func() {
			markOpen := sync.OnceFunc(open.Done)
			defer markOpen()
			c.do(ctx, fmt.Sprintf("%s-open-%d", b.runID, i), "chunks=200 delay=500ms", 200, behavior{onFirst: markOpen})
		})
	}
	open.Wait()
	time.Sleep(2 * time.Second)
	busy, err := g.usage()
	cancel()
	wait.Wait()
	return (float64(busy.Memory) - float64(idle.Memory)) / float64(b.Streams), err
}
