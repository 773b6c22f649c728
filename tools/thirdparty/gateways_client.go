package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model/numbered"
)

// Limits of a response.
const (
	idleLimit   = 20 * time.Second // between two reads
	lingerLimit = 2 * time.Second  // after the terminal event
)

// A protocol is the protocol between clients and a gateway.
type protocol struct {
	path   string
	body   func(order string) any
	failed func(data []byte) bool
}

// protocols are those of the descriptions that test/services names.
var protocols = map[string]protocol{
	"openai-chat": {
		path: "/v1/chat/completions",
		body: func(order string) any {
			return map[string]any{
				"model": "numbered", "stream": true, "messages": []any{map[string]any{"role": "user", "content": order}},
			}
		},
		failed: func(data []byte) bool { return bytes.HasPrefix(data, []byte(`{"error"`)) },
	},
	"ai-sdk": {
		path: "/api/chat",
		body: func(order string) any {
			part := map[string]any{"type": "text", "text": order}
			return map[string]any{
				"id": "chat", "messages": []any{map[string]any{"id": "1", "role": "user", "parts": []any{part}}},
			}
		},
		failed: func(data []byte) bool { return bytes.HasPrefix(data, []byte(`{"type":"error"`)) },
	},
}

// A response is the part of a response that a client received.
type response struct {
	ID       string
	State    ledger.ResponseState
	Ended    string // how the body ended: in order, cut, reset, or an error
	Received int
	Lost     int
	Doubled  int
	Reorder  int
	Corrupt  int
	TTFT     time.Duration   // to the first content, from the start
	Gaps     []time.Duration // between two chunks
	Left     time.Time       // when our client left
	Whole    bool            // all chunks arrived
}

// A client requests answers of one gateway.
type client struct {
	url, token string
	protocol
	transport *http.Transport
}

func newClient(url, token string, p protocol) *client {
	return &client{url, token, p, &http.Transport{MaxIdleConnsPerHost: 100}}
}

// A behaviour is an action of a client other than reading.
type behaviour struct {
	leaveAfter int           // chunks after which it leaves; 0: never
	pauseAfter int           // chunks after which it stops reading
	pause      time.Duration // for this long
	first      func()        // called at the first chunk
}

// request requests one answer of n chunks and reads it to its end.
func (c *client) request(ctx context.Context, id, order string, n int, b behaviour) *response {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &response{ID: id}
	body, err := json.Marshal(c.body("soak id=" + id + " " + order))
	if err != nil {
		panic(err) // maps of strings always have a JSON form
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+c.path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	watchdog := time.AfterFunc(idleLimit, cancel)
	defer watchdog.Stop()
	started := time.Now()
	answer, err := c.transport.RoundTrip(request)
	if err != nil {
		out.State, out.Ended = ledger.ResponseRefused, endText(err)
		return out
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		out.State, out.Ended = ledger.ResponseRefused, answer.Status
		return out
	}
	r := reading{response: out, client: c, behaviour: b, started: started, n: n, watchdog: watchdog, times: map[int]int{}}
	r.read(answer.Body)
	return out
}

// A reading reads the events of one response.
type reading struct {
	*response
	*client
	behaviour
	started  time.Time
	last     time.Time // of the last chunk
	n        int
	watchdog *time.Timer
	times    map[int]int // number of arrivals of each chunk
	highest  int
	events   int
	done     int
	failure  bool
	after    bool // data arrived after the terminal event
}

func (r *reading) read(body io.Reader) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, isData := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if r.done == 0 {
			r.watchdog.Reset(idleLimit)
		}
		if !isData {
			continue
		}
		if r.event(bytes.TrimSpace(data)); r.leaveAfter > 0 && r.Received >= r.leaveAfter {
			r.Left, r.State = time.Now(), ledger.ResponseAbandoned
			return
		}
	}
	r.finish(lines.Err())
}

// event handles the data of one event.
func (r *reading) event(data []byte) {
	r.events++
	r.after = r.after || r.done > 0
	switch {
	case string(data) == "[DONE]":
		if r.done++; r.done == 1 {
			r.watchdog.Reset(lingerLimit)
		}
		return
	case r.failed(data):
		r.failure = true
		return
	}
	for token, rest, found := numbered.Next(data); found; token, rest, found = numbered.Next(rest) {
		r.chunk(token)
	}
	if r.pauseAfter > 0 && r.Received >= r.pauseAfter {
		r.pauseAfter = 0
		r.watchdog.Reset(r.pause + idleLimit)
		time.Sleep(r.pause)
	}
}

// chunk handles one chunk.
func (r *reading) chunk(token numbered.Token) {
	now := time.Now()
	if r.last.IsZero() {
		r.TTFT = now.Sub(r.started)
		if r.first != nil {
			r.first()
		}
	} else {
		r.Gaps = append(r.Gaps, now.Sub(r.last))
	}
	r.last = now
	r.Received++
	switch {
	case !token.Valid(r.ID):
		r.Corrupt++
	case r.times[token.K] > 0:
		r.Doubled++
	case token.K < r.highest:
		r.Reorder++
	}
	r.times[token.K]++
	r.highest = max(r.highest, token.K)
}

// finish decides on the state at the end of the body.
func (r *reading) finish(err error) {
	r.Ended = endText(err)
	r.Lost = r.n - len(r.times)
	r.Whole = r.Lost == 0 && r.Corrupt == 0
	timeout := errors.Is(err, context.Canceled)
	switch {
	case r.failure:
		r.State = ledger.ResponseError
	case r.done > 0 && r.after:
		r.State = ledger.ResponseAfterDone
	case r.done > 0 && timeout:
		r.State = ledger.ResponseLingering
	case r.done > 0:
		r.State = ledger.ResponseComplete
	case timeout:
		r.State = ledger.ResponseIdle
	case r.events == 0:
		r.State = ledger.ResponseEmpty
	default:
		r.State = ledger.ResponseTruncated
	}
}

// endText describes how a body or a request ended.
func endText(err error) string {
	var operation *net.OpError
	switch {
	case err == nil:
		return "in order"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "cut"
	case errors.Is(err, context.Canceled):
		return "open"
	case errors.As(err, &operation):
		return operation.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "http: ")
}
