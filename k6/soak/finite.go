package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// A finiteLoad is a call of finite: requests with responses that end by themselves.
type finiteLoad struct {
	finiteOptions
	m           *module
	service     *jsService
	plan        plan.Plan
	ctx         context.Context
	state       *lib.State
	streams     *sse.Streams
	arrivals    *arrivals
	values      service.Values // for all requests
	results     *responses
	tuple       *lib.ExecutionTuple
	sink        *sampleSink
	credentials *credentials // of requests without a token()

	mu            sync.Mutex
	open          map[*response]struct{}
	idle          []*finiteClient
	inFlight      int64
	pausedClients int64         // clients of the closed model that pause after a refusal
	finished      bool          // the client closes the open responses
	changed       chan struct{} // has a value after a response or a pause has ended
}

type finiteClient struct {
	completed int64  // complete responses so far
	value     string // {client} of its last response
}

// finite implements soak.finite(service, options). The promise resolves when all responses have ended.
func (m *module) finite(serviceObject, options sobek.Value) *sobek.Promise {
	rt := m.vu.Runtime()
	f, err := m.newFinite(serviceObject, options)
	sse.Must(rt, err)
	promise, resolve, _ := rt.NewPromise()
	go func() {
		f.run()
		f.streams.OnEnd(func() error { return resolve(sobek.Undefined()) })
	}()
	return promise
}

func (m *module) newFinite(serviceObject, options sobek.Value) (*finiteLoad, error) {
	if m.vu.State() == nil {
		return nil, common.NewInitContextError("soak.finite makes requests; call it in the default function")
	}
	f := &finiteLoad{m: m, ctx: m.vu.Context(), state: m.vu.State(), service: m.compiled[serviceObject], open: map[*response]struct{}{}, changed: make(chan struct{}, 1)}
	if f.service == nil || f.service.Finite == nil {
		return nil, errors.New("soak.finite: service must be a result of soak.service with end.by: 'event'")
	}
	if err := m.vu.Runtime().ExportTo(options, &f.finiteOptions); err != nil {
		return nil, fmt.Errorf("soak.finite: %w", err)
	}
	err := f.check()
	if err == nil {
		err = f.prepare()
	}
	return f, err
}

// prepare derives the fields from the options. It runs on the event loop.
func (f *finiteLoad) prepare() (err error) {
	source, err := plan.SourceOf(f.m.environment)
	if err != nil {
		return err
	}
	f.plan = source.Base()
	f.plan.BackendURL = f.BaseURL
	f.plan.Marker = cmp.Or(f.plan.Marker, f.plan.TestID, service.FiniteSuite)
	if f.tuple, err = lib.NewExecutionTuple(f.state.Options.ExecutionSegment, f.state.Options.ExecutionSegmentSequence); err != nil {
		return fmt.Errorf("soak.finite: read the execution segment: %w", err)
	}
	f.credentials = f.m.defaultCredentials()
	f.arrivals = newArrivals(f.tuple, f.Rate, f.Poisson, f.Seed)
	f.values = service.Values{Base: f.BaseURL, Topic: f.plan.TopicName(0), Run: f.plan.Marker}
	if f.values.Token, err = f.m.token(f.service.TokenVariable); err != nil {
		return fmt.Errorf("soak.finite: %w", err)
	}
	o := sseclient.Options{
		ConnectTimeout: secondsOf(f.FirstTimeout), IdleTimeout: secondsOf(f.FirstTimeout), MaxEventSize: f.service.MaxEventSize,
		Resume: sseclient.Resume{Off: true}, LateHeader: true,
	}
	if err := setTransport(&o, f.AcceptEncoding, f.HTTPVersion); err != nil {
		return err
	}
	if f.Abandon > 0 && f.cut() != sseclient.CutFIN {
		o.Sharing.StreamsPerConnection = 1 // ending an HTTP/2 connection this way would end its other responses
	}
	f.streams = f.m.sse.Streams(f.service.Connect.Route(), f.service.Connect.Method, o, responseCallbacks())
	f.sink = f.m.recorder.telemetry.sink(f.m.vu)
	f.results = f.m.recorder.ensureResponses(shard.ResponseLimits{
		First: milli(f.MaxFirst), Gap: milli(f.MaxGap), Total: secondsOf(f.MaxTotal),
	}, max(f.plan.Runners, 1))
	return nil
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (r *recorder) ensureResponses(limits shard.ResponseLimits, runners int) *responses {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.responses == nil {
		r.responses = newResponses(limits, runners, r.start)
	}
	return r.responses
}

// finiteResponses returns the counts of responses, nil if the script does not call finite.
func (r *recorder) finiteResponses() *responses {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.responses
}

// run makes the requests, waits for the responses, and closes the responses that are still open after Drain.
func (f *finiteLoad) run() {
	f.m.recorder.telemetry.start(f.sink)
	defer f.m.recorder.telemetry.end(f.sink)
	start := time.Now()
	if f.Rate > 0 {
		f.runOpen(start)
	} else {
		f.runClosed(start)
	}
	f.await(time.Now().Add(secondsOf(f.Drain)))
	f.mu.Lock()
	f.finished = true
	remaining := maps.Clone(f.open)
	f.mu.Unlock()
	for r := range remaining {
		r.stream.Stop(sseclient.ReasonClient)
	}
	f.await(time.Time{})
}

// runOpen makes requests at their intended times, even if the service is slower. It skips requests that would exceed
// maxInFlight.
func (f *finiteLoad) runOpen(start time.Time) {
	limit := max(f.tuple.ScaleInt64(f.MaxInFlight), 1)
	for {
		n, after := f.arrivals.next()
		if after >= secondsOf(f.Seconds) || !sleep(f.ctx, time.Until(start.Add(after))) {
			return
		}
		if f.responsesInFlight() >= limit {
			f.results.addSkipped()
			continue
		}
		f.start(n, start.Add(after))
	}
}

func (f *finiteLoad) runClosed(start time.Time) {
	concurrency := f.tuple.ScaleInt64(f.Concurrency)
	end := start.Add(secondsOf(f.Seconds))
	for time.Now().Before(end) && f.ctx.Err() == nil && concurrency > 0 {
		if f.busyClients() < concurrency {
			n, _ := f.arrivals.next()
			f.start(n, time.Now())
			continue
		}
		f.awaitChange(end)
	}
}

func (f *finiteLoad) responsesInFlight() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inFlight
}

// busyClients returns the number of clients of the closed model that are waiting for a response or pausing.
func (f *finiteLoad) busyClients() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inFlight + f.pausedClients
}

// await waits until no response is in flight, the deadline passes, or the iteration is interrupted. A zero deadline
// never passes.
func (f *finiteLoad) await(deadline time.Time) {
	for f.responsesInFlight() > 0 && f.ctx.Err() == nil && (deadline.IsZero() || time.Now().Before(deadline)) {
		f.awaitChange(deadline)
	}
}

// awaitChange waits until a response or a pause ends, the deadline passes, or the iteration is interrupted. With a zero
// deadline it waits for at most a minute.
func (f *finiteLoad) awaitChange(deadline time.Time) {
	if deadline.IsZero() {
		deadline = time.Now().Add(time.Minute)
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-f.changed:
	case <-timer.C:
	case <-f.ctx.Done():
	}
}

// start makes request n. due is its intended start time. If the description has functions, start first calls them on
// the event loop.
func (f *finiteLoad) start(n int64, due time.Time) {
	r := &response{load: f, n: n, id: f.plan.Marker + "-" + strconv.FormatInt(n, 10), credentials: f.credentials}
	r.account.Due = f.m.recorder.instant(due)
	if f.Abandon > 0 && uniform(f.Seed, n) < f.Abandon {
		r.abandonAfter = f.AbandonAfter
	}
	f.mu.Lock()
	f.inFlight++
	r.client = f.client()
	f.mu.Unlock()
	f.results.addStart(f.m.recorder.wall(time.Now()))
	if !f.service.hasFunctions() {
		v := f.values
		r.request = f.requestOf(&v, r)
		r.begin()
		return
	}
	f.streams.OnLoop(func() error {
		err := f.call(r)
		switch interrupted := (*sobek.InterruptedError)(nil); {
		case errors.As(err, &interrupted):
			return err
		case err != nil:
			r.refuse(err)
		default:
			r.begin()
		}
		return nil
	})
}

func (f *finiteLoad) client() *finiteClient {
	last := len(f.idle) - 1
	if last < 0 {
		return &finiteClient{}
	}
	c := f.idle[last]
	f.idle = f.idle[:last]
	return c
}

// call builds the request with the functions of the description. It runs on the event loop.
func (f *finiteLoad) call(r *response) (err error) {
	v := f.values
	if f.service.token != nil {
		if v.Token, err = f.service.callToken(); err != nil {
			return err
		}
		r.credentials = &credentials{secrets: f.credentials.secrets, token: v.Token}
	}
	r.request = f.requestOf(&v, r)
	return f.service.customRequest(&r.request, r.n, r.client, v.Prompt)
}

// requestOf returns the request of a response. It sets the fields of v that depend on the response.
func (f *finiteLoad) requestOf(v *service.Values, r *response) sseclient.Request {
	v.ID, v.N, v.Client = r.id, r.n, r.client.value
	v.Prompt = service.DefaultPrompt(r.id)
	if len(f.Prompts) > 0 {
		v.Prompt = strings.ReplaceAll(f.Prompts[r.n%int64(len(f.Prompts))], "{id}", r.id)
	}
	return requestUsing(&f.service.Connect, v)
}

// uniform returns a random number from 0 to 1 that depends only on the seed and the number of a request.
func uniform(seed uint64, n int64) float64 {
	return rand.New(rand.NewPCG(seed, uint64(n))).Float64() // #nosec G115 G404 -- not a secret
}

// refusalPause is the pause of a client after a refusal. It limits the request rate if a service refuses immediately.
const refusalPause = time.Second

// finishResponse removes a response that has ended. Its client becomes idle, is replaced, or pauses after a refusal.
func (f *finiteLoad) finishResponse(r *response) {
	f.mu.Lock()
	delete(f.open, r)
	f.inFlight--
	if r.account.State == ledger.ResponseComplete { // after a fault a new client replaces this one
		r.client.completed++
		f.idle = append(f.idle, r.client)
	}
	if f.Concurrency > 0 && r.account.State == ledger.ResponseRefused {
		f.pausedClients++
		time.AfterFunc(refusalPause, f.resume)
	}
	f.mu.Unlock()
	f.signal()
}

func (f *finiteLoad) resume() {
	f.mu.Lock()
	f.pausedClients--
	f.mu.Unlock()
	f.signal()
}

func (f *finiteLoad) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// isOver reports whether the load is over or was interrupted. The client then closes the open responses.
func (f *finiteLoad) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.finished || f.ctx.Err() != nil
}
