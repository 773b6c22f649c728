package soak

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/grafana/sobek"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// moduleOf returns the script that declares the service of an embedded module or of a description.
func moduleOf(t *testing.T, service string) string {
	t.Helper()
	if !strings.HasPrefix(service, "{") {
		text, err := os.ReadFile(filepath.Join("..", "..", "load-tests", "services", service+".js"))
		require.NoError(t, err)
		_, service, _ = strings.Cut(string(text), "export default ")
		service = strings.TrimSuffix(strings.TrimSpace(service), ";")
	}
	return "var answers = service(" + service + ")"
}

// finiteOf runs an iteration with requests of an embedded module or of a description, and returns the responses in the
// shard.
func finiteOf(t *testing.T, url, service, options string) *shard.Responses {
	t.Helper()
	h := holderOf(t, url, moduleOf(t, service))
	require.True(t, h.run(t, fmt.Sprintf(`finite(answers, Object.assign({baseUrl: url, rate: 0, concurrency: 4, seconds: 0.5, maxInFlight: 100, drain: 60,
		firstTimeout: 60, idleTimeout: 60, linger: 60, abandonAfter: 2}, %s))`, options)))
	s := new(shard.Shard)
	h.r.fill(s)
	require.NotNil(t, s.Responses)
	return s.Responses
}

// answers describes a service whose responses end with [DONE].
const answers = `{name: 'answers', connect: {method: 'POST', url: '{base}/ask'}, message: {per: 'request'}, end: {by: 'event', done: {data: '[DONE]'}}}`

func startModel(t *testing.T) string {
	t.Helper()
	return serve(t, model.New(model.Config{Order: model.Order{Chunks: 6, Delay: time.Millisecond}, Keep: 100_000, Log: slog.New(slog.DiscardHandler)}).ServeHTTP)
}

// Each fault of the numbered model causes its own state and counts.
func TestFiniteAccountsForEachFault(t *testing.T) {
	withExpected := func(c ledger.Totals) ledger.Totals {
		c.Expected = c.Received + c.Missed + c.Corrupted
		return c
	}
	for fault, want := range map[string]struct {
		state  ledger.ResponseState
		counts ledger.Totals // of one response
	}{
		"none":       {ledger.ResponseComplete, withExpected(ledger.Totals{Received: 6})},
		"truncate@3": {ledger.ResponseTruncated, withExpected(ledger.Totals{Received: 3})},
		"cut@3":      {ledger.ResponseTruncated, withExpected(ledger.Totals{Received: 3})},
		"noterminal": {ledger.ResponseTruncated, withExpected(ledger.Totals{Received: 6})},
		"error@3":    {ledger.ResponseError, withExpected(ledger.Totals{Received: 3})},
		"stall@3":    {ledger.ResponseIdle, withExpected(ledger.Totals{Received: 3})},
		"empty":      {ledger.ResponseEmpty, ledger.Totals{}},
		"double@3":   {ledger.ResponseComplete, withExpected(ledger.Totals{Received: 6, Duplicated: 1})},
		"drop@3":     {ledger.ResponseComplete, withExpected(ledger.Totals{Received: 5, Missed: 1})},
		"swap@3":     {ledger.ResponseComplete, withExpected(ledger.Totals{Received: 6, Reordered: 1})},
		"corrupt@3":  {ledger.ResponseComplete, withExpected(ledger.Totals{Received: 5, Corrupted: 1})},
		"linger":     {ledger.ResponseLingering, withExpected(ledger.Totals{Received: 6})},
		"twice":      {ledger.ResponseAfterDone, withExpected(ledger.Totals{Received: 6})},
		"429":        {ledger.ResponseRefused, ledger.Totals{}},
		"500":        {ledger.ResponseRefused, ledger.Totals{}},
	} {
		apis := []string{"openai-chat"}
		if fault == "none" || fault == "error@3" { // internal/service has a test of the other events of each API
			apis = append(apis, "openai-responses", "anthropic-messages")
		}
		for _, api := range apis {
			inBubble(t, func(t *testing.T) {
				got := finiteOf(t, startModel(t), api, fmt.Sprintf(`{prompts: ["soak id={id} chunks=6 delay=1ms ttft=1ms fault=%s"], rate: 100, concurrency: 0, seconds: 0.05, idleTimeout: 1, linger: 1}`, fault))
				n := got.Ended()
				require.Positive(t, n)
				require.Equal(t, map[ledger.ResponseState]int64{want.state: n}, got.States, "%s of %s: %v", fault, api, got.Findings)
				times := uint64(n) // #nosec G115 -- a count
				c := want.counts
				require.Equal(t, ledger.Totals{
					Received: c.Received * times, Missed: c.Missed * times, Expected: c.Expected * times, Duplicated: c.Duplicated * times,
					Reordered: c.Reordered * times, Corrupted: c.Corrupted * times,
				}, got.Chunks, "%s of %s: %v", fault, api, got.Findings)
			})
		}
	}
}

func TestFiniteCountsIncompleteResponses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		got := finiteOf(t, startModel(t), "openai-chat", `{prompts: ["soak id={id} delay=1ms ttft=1ms fault=length@3"], seconds: 0.1}`)
		require.Equal(t, got.Ended(), got.States[ledger.ResponseComplete])
		require.Equal(t, got.Ended(), got.Incomplete)
	})
}

func TestFiniteCountsBursts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		got := finiteOf(t, startModel(t), "openai-chat", `{prompts: ["soak id={id} delay=5ms ttft=1ms fault=burst"], seconds: 1}`)
		require.Positive(t, got.SingleBurst)
		got = finiteOf(t, startModel(t), "openai-chat", `{prompts: ["soak id={id} delay=100ms ttft=1ms"], seconds: 0.1}`)
		require.Positive(t, got.States[ledger.ResponseComplete])
		require.Zero(t, got.SingleBurst)
	})
}

// Progress reports contain each bucket and each faulty response once, and the current bucket each time.
func TestProgressReportsNewResponses(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	r := newResponses(shard.ResponseLimits{}, 1, start)
	end := func(state ledger.ResponseState, at time.Time) {
		r.addStart(at)
		r.addEnd(&ledger.Response{State: state, Chunks: 2}, "id", "reset", at)
	}
	report := func() (p shard.Progress) {
		r.progress(&p)
		return p
	}
	end(ledger.ResponseTruncated, start)
	p := report()
	require.Equal(t, []shard.FoundFault{{AtMS: 1_000_000, ID: "id", Text: "truncated after 2 chunks: reset"}}, p.Found)
	require.Len(t, p.Responses, 1)
	end(ledger.ResponseComplete, start.Add(time.Second))
	p = report()
	require.Empty(t, p.Found)
	require.Equal(t, map[ledger.ResponseState]int64{ledger.ResponseTruncated: 1, ledger.ResponseComplete: 1}, p.Responses[0].States)
	for range maxFindings + 1 {
		end(ledger.ResponseTruncated, start.Add(time.Minute))
	}
	p = report()
	require.Equal(t, []int64{1000, 1060}, []int64{p.Responses[0].Unix, p.Responses[1].Unix})
	end(ledger.ResponseTruncated, start) // another goroutine has ended the bucket
	require.Len(t, report().Responses, 1)
	require.Len(t, p.Found, maxFindings)
	require.Equal(t, 1, p.Unlisted)
	require.Equal(t, "truncated after 1 chunk", describeFinding(&shard.ResponseFinding{State: ledger.ResponseTruncated, Chunks: 1}))
}

func TestFiniteWithAnOpenModel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, poisson := range []string{"false", "true"} {
			got := finiteOf(t, startModel(t), "openai-chat", `{rate: 100, concurrency: 0, poisson: `+poisson+`, seed: 3}`)
			require.InDelta(t, 50, got.Ended(), 20)
			require.True(t, poisson == "true" || got.Ended() == 50)
			require.Equal(t, got.Ended(), got.States[ledger.ResponseComplete], got.Findings)
			require.Equal(t, got.Ended(), got.Numbered)
		}
	})
}

func TestFiniteSkipsRequestsAboveMaxInFlight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		got := finiteOf(t, startModel(t), "openai-chat", `{rate: 100, concurrency: 0, maxInFlight: 2, prompts: ["soak id={id} ttft=2s"]}`)
		require.EqualValues(t, 2, got.Ended())
		require.EqualValues(t, 48, got.Skipped)
	})
}

func TestFiniteClosesOpenResponsesAfterDrain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		got := finiteOf(t, startModel(t), "openai-chat", `{rate: 20, concurrency: 0, drain: 0.1, prompts: ["soak id={id} delay=60s"]}`)
		require.Equal(t, map[ledger.ResponseState]int64{ledger.ResponseUnfinished: 10}, got.States)
	})
}

func TestFiniteAbandonsAShare(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		got := finiteOf(t, startModel(t), "openai-chat", `{rate: 100, concurrency: 0, abandon: 0.5, seed: 1, prompts: ["soak id={id} delay=20ms"]}`)
		require.InDelta(t, 25, got.States[ledger.ResponseAbandoned], 15)
		require.Equal(t, got.Ended(), got.States[ledger.ResponseAbandoned]+got.States[ledger.ResponseComplete])
		require.Empty(t, got.Findings)
	})
}

// The description has a function body().
func TestFiniteOfAnotherService(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var bodies []string
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body)) // requests are sequential
			w.Header().Set("Content-Type", "text/event-stream")
			time.Sleep(10 * time.Millisecond)
			for n := range 5 {
				if n == 3 && len(bodies) == 2 {
					continue
				}
				fmt.Fprintf(w, "event: piece\ndata: {\"n\":%d,\"text\":\"a\"}\n\n", n)
			}
			_, _ = w.Write([]byte("event: finished\ndata: {}\n\n"))
		})
		got := finiteOf(t, url, `{name: 'answers', connect: {method: 'POST', url: '{base}/ask'}, body: (n) => 'question ' + n,
			message: {event: 'piece', seq: 'json:$.n', per: 'request'}, end: {by: 'event', done: {event: 'finished'}, failed: {event: 'error'}}}`,
			`{concurrency: 1}`)
		require.Equal(t, got.Ended(), got.States[ledger.ResponseComplete], got.Findings)
		require.Equal(t, "question 0", bodies[0])
		require.EqualValues(t, 1, got.Chunks.Missed)
		require.EqualValues(t, 3, *got.Findings[0].FirstMissing)
		require.Equal(t, got.Ended(), got.OpenTails)
		require.Equal(t, got.Ended(), got.FromZero)
	})
}

// If a function throws, its request fails. The run continues, because a run that ends early would pass.
func TestFiniteFailsRequestsWhoseFunctionThrows(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: a\n\ndata: [DONE]\n\n"))
		})
		got := finiteOf(t, url, `{name: 'answers', connect: {method: 'POST', url: '{base}/ask'},
			body: (n) => { if (n % 10 === 3) { throw new Error('no question' + ' €'.repeat(100)); } return n % 10 === 4 ? undefined : 'x'; },
			message: {per: 'request'}, end: {by: 'event', done: {data: '[DONE]'}}}`, `{rate: 100, concurrency: 0}`)
		require.Equal(t, map[ledger.ResponseState]int64{ledger.ResponseComplete: 40, ledger.ResponseRefused: 10}, got.States)
		require.Contains(t, got.Findings[0].Reason, "no question")
		require.True(t, utf8.ValidString(got.Findings[0].Reason))
	})
}

// A response that sends only heartbeats is idle or, after its terminal event, lingering.
func TestFiniteEndsAResponseThatSendsOnlyHeartbeats(t *testing.T) {
	for content, want := range map[string]ledger.ResponseState{
		"": ledger.ResponseIdle, "data: a\n\n": ledger.ResponseIdle, "data: a\n\ndata: [DONE]\n\n": ledger.ResponseLingering,
	} {
		inBubble(t, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, content)
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, ": ping\n\n")
					w.(http.Flusher).Flush() //nolint:errcheck // of net/http
					time.Sleep(10 * time.Millisecond)
				}
			})
			got := finiteOf(t, url, answers, `{firstTimeout: 2, idleTimeout: 2, linger: 0.1, seconds: 5}`)
			require.Greater(t, got.Ended(), int64(4), "each of the first four responses must end before the end of the run")
			require.Equal(t, map[ledger.ResponseState]int64{want: got.Ended()}, got.States)
		})
	}
}

// A finding names the setting of soak run, not the option of the SSE client.
func TestFiniteNamesTheSettingOfATimeout(t *testing.T) {
	for content, want := range map[string]string{
		"no header":                   "^no complete response header within the connect timeout .*\\(FIRST_TIMEOUT\\)$",
		"":                            "^no byte from the server within the idle timeout \\(FIRST_TIMEOUT\\)$",
		"data: a\n\n":                 "^no byte from the server within the idle timeout \\(IDLE_TIMEOUT\\)$",
		"data: a\n\ndata: [DONE]\n\n": "^no byte from the server within the idle timeout \\(LINGER\\)$",
	} {
		inBubble(t, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if content != "no header" {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, content)
					w.(http.Flusher).Flush() //nolint:errcheck // of net/http
				}
				<-r.Context().Done()
			})
			got := finiteOf(t, url, answers, `{firstTimeout: 1, idleTimeout: 0.5, linger: 0.5}`)
			require.Regexp(t, want, got.Findings[0].Reason)
		})
	}
}

// A runner writes its first shard before the first request. A runner that is killed early leaves no other shard.
func TestFiniteDescribesItsServiceBeforeItsFirstRequest(t *testing.T) {
	t.Parallel()
	h := holderOf(t, "http://127.0.0.1:1", moduleOf(t, answers))
	s := new(shard.Shard)
	h.r.fill(s)
	require.Equal(t, "answers", s.Service.Name)
}

func TestFiniteRejectsOtherServices(t *testing.T) {
	t.Parallel()
	h := holderOf(t, "http://127.0.0.1:1", `var noop = service({name: 'x', connect: {url: '{base}'}, message: 'unchecked'})`)
	for _, script := range []string{`finite(noop, {})`, `finite(null, {})`} {
		_, err := h.VU.Runtime().RunString(script)
		var thrown *sobek.Exception
		require.ErrorAs(t, err, &thrown)
		require.Contains(t, err.Error(), "end.by: 'event'")
	}
}

// A client sends a value of its last response in a header or passes it to body(). A new client starts after a fault.
func TestFiniteContinuesConversations(t *testing.T) {
	for _, request := range []string{
		`connect: {method: "POST", url: "{base}/", headers: {"X-Session": "{client}"}, client: "header:X-Session"}`,
		`connect: {method: "POST", url: "{base}/", headers: {"X-Session": "{client}"}, client: "json:$.id"}`,
		`body: (n, i, client, prompt) => client + "/" + i + "/" + prompt, connect: {method: "POST", url: "{base}/", client: "json:$.id"}`,
	} {
		inBubble(t, func(t *testing.T) {
			var mu sync.Mutex
			turns, faults := map[string]int{}, 0
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				session := r.Header.Get("X-Session")
				if body, _ := io.ReadAll(r.Body); len(body) > 0 {
					part := strings.Split(string(body), "/")
					session = part[0]
					mu.Lock()
					if part[1] != fmt.Sprint(turns[session]) || !strings.Contains(part[2], "Write a short story.") {
						faults++
					}
					mu.Unlock()
				}
				mu.Lock()
				if session == "" {
					session = fmt.Sprintf("s%d", len(turns))
				}
				turns[session]++
				turn := turns[session]
				mu.Unlock()
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("X-Session", session)
				time.Sleep(time.Millisecond)
				fmt.Fprintf(w, "data: {\"id\":%q}\n\ndata: {\"id\":\"other\"}\n\n", session)
				if turn < 3 {
					fmt.Fprint(w, "event: end\ndata:\n\n")
				}
			})
			got := finiteOf(t, url, `{name: "x", `+request+`, message: "unchecked", end: {by: "event", done: {event: "end"}}}`, `{concurrency: 1}`)
			require.Positive(t, got.States[ledger.ResponseTruncated])
			require.Zero(t, faults)
			for session, n := range turns {
				require.LessOrEqual(t, n, 3, session)
			}
			require.InDelta(t, 2*got.States[ledger.ResponseTruncated], got.States[ledger.ResponseComplete], 2)
		})
	}
}

// The metrics equal the counts of the shard. Latencies are published only for complete responses.
func TestFinitePublishesStatesAndLatencies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := holderOf(t, startModel(t), moduleOf(t, "openai-chat"))
		require.True(t, h.run(t, `finite(answers, {baseUrl: url, rate: 0, concurrency: 4, seconds: 0.2, drain: 60, firstTimeout: 60, idleTimeout: 60, linger: 60,
			prompts: ["soak id={id} fault=truncate@2", "soak id={id} chunks=6"]})`))
		s := new(shard.Shard)
		h.r.fill(s)
		got := map[string]int64{}
		for {
			select {
			case container := <-h.samples:
				for _, sample := range container.GetSamples() {
					if tags := sample.Tags.Map(); tags["state"] != "" || tags["le"] == "+Inf" {
						got[sample.Metric.Name+" "+tags["state"]] += int64(sample.Value)
					}
				}
				continue
			default:
			}
			break
		}
		require.Positive(t, s.Responses.States[ledger.ResponseTruncated])
		for _, state := range ledger.ResponseStates {
			require.Equal(t, s.Responses.States[state], got[responsesMetric+" "+string(state)], state)
		}
		complete := s.Responses.States[ledger.ResponseComplete]
		require.Positive(t, complete)
		for i, want := range []int64{complete, 5 * complete, complete} {
			require.Equal(t, want, got[responseBuckets[i].name+" "], responseBuckets[i].name)
		}
	})
}
