// Package model is the numbered model: an HTTP server with the APIs OpenAI chat completions, OpenAI Responses and
// Anthropic messages. Each chunk of an answer has a number and a checksum in its text (package numbered). Behind any
// gateway, the chunks that a client receives can thus be compared with the chunks that were sent. The text of the last
// user message of a request sets the length, the delays and the fault of its answer. A ledger records each valid
// request.
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Config is the configuration of a server.
type Config struct {
	Order                    // the defaults of each request
	Shares     []Share       // faults of requests that do not set one
	Seed       uint64        // seed for the selection of the requests that have a fault from Shares
	Keep       int           // maximum number of requests in the ledger
	RetryAfter time.Duration // value of the header Retry-After with status 429, rounded up to seconds
	DrainWait  time.Duration // maximum time for open answers to end when the server stops
	Log        *slog.Logger
}

const maxBody = 16 << 20 // bytes

// A Server serves the APIs of language models with numbered answers.
type Server struct {
	config       Config
	ledger       ledger
	metrics      *metrics
	routes       *http.ServeMux
	created      int64         // of the model, in seconds since 1970
	unnamedCount atomic.Int64  // requests without an id so far
	stopping     chan struct{} // closed when the server starts to stop
}

// New returns a server with an empty ledger.
func New(config Config) *Server {
	s := &Server{
		config: config, ledger: ledger{capacity: max(config.Keep, 1)}, metrics: newMetrics(), routes: http.NewServeMux(),
		created: time.Now().Unix(), stopping: make(chan struct{}),
	}
	for i := range apis {
		s.routes.HandleFunc("POST "+apis[i].path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, &apis[i]) })
	}
	s.routes.HandleFunc("GET /v1/models", s.models)
	for _, path := range [...]string{"/healthz", "/readyz"} {
		s.routes.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	}
	s.routes.HandleFunc("GET /ledger", s.writeLedger)
	s.routes.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return s
}

// ServeHTTP handles one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// Serve handles requests on a listener until ctx ends. Open answers then have DrainWait to end. An answer that only
// keeps its connection open, because of the fault Stall or Linger, ends at once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
	}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		close(s.stopping)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.DrainWait)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
		drained <- nil
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the numbered model: %w", err)
	}
	return <-drained
}

// models lists the only model of the server, in the format of OpenAI and of Anthropic.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","created":%d,"owned_by":"sse-soak",`+
		`"type":"model","display_name":"Numbered model","created_at":%q}],"has_more":false,"first_id":%[1]q,"last_id":%[1]q}`,
		defaultModel, s.created, time.Unix(s.created, 0).UTC().Format(time.RFC3339))
}

func (s *Server) writeLedger(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	encoder := json.NewEncoder(w)
	for record := range s.Records(r.URL.Query().Get("prefix")) {
		if encoder.Encode(record) != nil { // the client closed the connection
			return
		}
	}
}

// Records yields the requests in the ledger whose id starts with prefix, the oldest first.
func (s *Server) Records(prefix string) iter.Seq[Record] { return s.ledger.records(prefix) }

func (s *Server) answer(w http.ResponseWriter, r *http.Request, api *api) {
	started := time.Now()
	body := new(bytes.Buffer)
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		refuse(w, api, http.StatusBadRequest, "read the request: "+err.Error())
		return
	}
	a, err := s.read(body.Bytes())
	if err != nil {
		refuse(w, api, http.StatusBadRequest, err.Error())
		return
	}
	a.created = started.Unix()
	record := Record{
		ID: a.ID, API: api.name, Stream: a.stream, Started: started.UnixMicro(), Fault: a.Fault.String(),
		Chunks: int32(a.Chunks), Outcome: Open, // #nosec G115 -- at most MaxChunks
	}
	number := s.ledger.add(record)
	s.metrics.open.Inc()
	out := &response{server: s, api: api, a: a, w: w, ctx: r.Context(), record: record, started: started}
	defer func() {
		s.metrics.open.Dec()
		out.record.Ended = time.Now().UnixMicro()
		s.ledger.put(number, out.record)
		s.metrics.requests.WithLabelValues(out.record.API, string(out.record.Outcome)).Inc()
	}()
	out.send()
}

func (s *Server) read(body []byte) (*answer, error) {
	request, err := readRequest(body)
	if err != nil {
		return nil, err
	}
	order, err := s.config.applyText(request.text)
	if err != nil {
		return nil, err
	}
	if order.ID == "" {
		order.ID = "unnamed-" + strconv.FormatInt(s.unnamedCount.Add(1), 10)
	}
	if !order.setsFault {
		order.Fault = draw(s.config.Shares, s.config.Seed, order.ID)
	}
	order.Fault = order.Fault.limitedTo(order.Chunks)
	if order.Fault.Kind == LengthLimit {
		order.Chunks = order.Fault.K
	}
	request.text = ""
	return &answer{Order: order, request: request}, nil
}

// metrics holds the values of /metrics. No label contains the id of a request.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec // by API and outcome
	chunks   prometheus.Counter
	open     prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	add := promauto.With(prometheus.WrapRegistererWithPrefix("model_", m.registry))
	m.requests = add.NewCounterVec(prometheus.CounterOpts{
		Name: "requests_total", Help: "Requests that ended, by API and outcome.",
	}, []string{"api", "outcome"})
	m.chunks = add.NewCounter(prometheus.CounterOpts{Name: "chunks_sent_total", Help: "Chunks written to clients."})
	m.open = add.NewGauge(prometheus.GaugeOpts{Name: "requests_open", Help: "Requests that are being answered."})
	for _, api := range apis {
		for _, outcome := range outcomes {
			m.requests.WithLabelValues(api.name, string(outcome))
		}
	}
	return m
}
