package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// k6Port is the port on which the operator makes k6 listen.
const k6Port = 6565

// A runnerAPI is k6's REST API in one runner, reached through the API server.
type runnerAPI struct {
	open func(ctx context.Context) (*Forward, error)

	mu      sync.Mutex
	forward *Forward
}

var k6Client = &http.Client{Timeout: 10 * time.Second}

// request sends a request. After an error the next request opens a new connection.
func (r *runnerAPI) request(ctx context.Context, method, path string, body, answer any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forward == nil {
		f, err := r.open(ctx)
		if err != nil {
			return err
		}
		r.forward = f
	}
	if err := doRequest(ctx, method, "http://"+r.forward.Address+path, body, answer); err != nil {
		r.forward.Close()
		r.forward = nil
		return err
	}
	return nil
}

func (r *runnerAPI) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forward != nil {
		r.forward.Close()
		r.forward = nil
	}
}

func doRequest(ctx context.Context, method, url string, body, answer any) error {
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, text)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := k6Client.Do(req)
	if err != nil {
		return fmt.Errorf("k6's REST API: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("k6's REST API answered %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		return fmt.Errorf("k6's REST API: %w", err)
	}
	return nil
}

type k6Status struct {
	Data struct {
		Type       string `json:"type"`
		ID         string `json:"id"`
		Attributes struct {
			Paused  *bool `json:"paused,omitempty"`
			Stopped bool  `json:"stopped"`
		} `json:"attributes"`
	} `json:"data"`
}

func (r *runnerAPI) isPaused(ctx context.Context) (bool, error) {
	var s k6Status
	if err := r.request(ctx, http.MethodGet, "/v1/status", nil, &s); err != nil {
		return false, err
	}
	return s.Data.Attributes.Paused != nil && *s.Data.Attributes.Paused, nil
}

// stop makes the runner close its streams, write its shard and end.
func (r *runnerAPI) stop(ctx context.Context) error {
	var s k6Status
	s.Data.Type, s.Data.ID, s.Data.Attributes.Stopped = "status", "default", true
	return r.request(ctx, http.MethodPatch, "/v1/status", s, &s)
}

// count reads the counters of k6/x/sse and k6/x/soak, and k6's counter of requests.
func (r *runnerAPI) count(ctx context.Context) (n shard.Progress, err error) {
	var metrics struct {
		Data []struct {
			ID         string `json:"id"`
			Attributes struct {
				Sample struct {
					Count float64 `json:"count"`
					Value float64 `json:"value"`
				} `json:"sample"`
			} `json:"attributes"`
		} `json:"data"`
	}
	if err := r.request(ctx, http.MethodGet, "/v1/metrics", nil, &metrics); err != nil {
		return n, err
	}
	counts := map[string]float64{}
	for _, m := range metrics.Data {
		counts[m.ID] = m.Attributes.Sample.Count + m.Attributes.Sample.Value // a metric has one of the two
	}
	return shard.Progress{
		Opened: int(counts["sse_connection_opened"]), Open: int(counts["sse_connection_opened"] - counts["sse_connection_closed"]),
		// The metrics do not distinguish lost messages from other missing ones.
		Counts: ledger.Counts{
			Received: uint64(counts["soak_noops"] + counts["soak_messages"]), Lost: uint64(counts["soak_noops_missed"] + counts["soak_messages_missed"]),
			Late: uint64(counts["soak_noops_late"] + counts["soak_messages_late"]),
		},
		Published: uint64(counts["soak_published"]), Confirmed: uint64(counts["soak_confirmed"]),
		Requests: int64(counts["http_reqs"]),
	}, nil
}
