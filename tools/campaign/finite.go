package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A finiteSpec describes a run against the numbered model, which runs in this process and sends finite responses.
type finiteSpec struct {
	Shares []string      // faults in the syntax of the model, each with its share of responses
	Chunks int           // number of chunks per response
	Delay  time.Duration // time between two chunks
}

// finiteKinds are faults of responses. They are drawn only for -kind finite or one of their names.
var finiteKinds = []kind{
	{"finite", "all faults", finiteFaults("truncate", "cut", "reset", "error", "stall", "noterminal", "empty", "double", "drop", "swap", "corrupt", "linger",
		"twice", "length", "burst", "429", "500")},
	{"finite", "truncated", finiteFaults("truncate")}, {"finite", "cut", finiteFaults("cut")}, {"finite", "reset", finiteFaults("reset")},
	{"finite", "error event", finiteFaults("error")}, {"finite", "silent", finiteFaults("stall")}, {"finite", "no terminal event", finiteFaults("noterminal")},
	{"finite", "empty", finiteFaults("empty")}, {"finite", "doubled", finiteFaults("double")}, {"finite", "dropped", finiteFaults("drop")},
	{"finite", "swapped", finiteFaults("swap")}, {"finite", "changed", finiteFaults("corrupt")}, {"finite", "terminal event twice", finiteFaults("twice")},
	{"finite", "refused", finiteFaults("429", "500")},
}

var cleanFinite = clean(
	finiteFaults(), finiteFaults(), finiteFaults("length"), finiteFaults("burst"),
	finiteFaults("linger"),
)

func drawFinite(seed uint64, only string) *scenario {
	r := rand.New(rand.NewPCG(seed, 0xf1))
	pool := finiteKinds
	switch clean := r.IntN(3) == 0; {
	case only != "finite":
		pool = withName(only, finiteKinds)
	case clean:
		pool = cleanFinite
	}
	sc := &scenario{Seed: seed, Suite: "finite", Plan: plan{Seconds: 5 + r.IntN(6), Interval: 1}}
	sc.prepareOne(r, pool...)
	return sc
}

// finiteFaults makes each fault affect a random share of the responses, at a random chunk (not the first or last).
func finiteFaults(faults ...string) setup {
	return func(r *rand.Rand, sc *scenario) {
		module := oneOf(r, "openai-chat", "openai-responses", "anthropic-messages")
		f := &finiteSpec{Chunks: 3 + r.IntN(60), Delay: time.Duration(r.IntN(20)) * time.Millisecond}
		for _, fault := range faults {
			share := (.02 + .3*r.Float64()) / float64(len(faults))
			f.Shares = append(f.Shares, fmt.Sprintf("%s@%d:%.3f", fault, 2+r.IntN(f.Chunks-2), share))
		}
		sc.Args = []string{
			"--service", module, "--seconds", fmt.Sprint(sc.Plan.Seconds), "--runners", fmt.Sprint(1 + r.IntN(2)), "--seed", fmt.Sprint(sc.Seed),
			"--idle-timeout", "3", "--first-timeout", "10", "--linger", "2", "--drain", "30",
		}
		if r.IntN(3) == 0 {
			sc.Args = append(sc.Args, "--concurrency", fmt.Sprint(1+r.IntN(20)))
		} else {
			sc.Args = append(sc.Args, "--rate", fmt.Sprint(1+r.IntN(60)), "--arrival", oneOf(r, "constant", "poisson"))
		}
		sc.Finite = f
	}
}

func (r *run) startFinite(l net.Listener) error {
	config := model.Config{Order: model.Order{Chunks: r.Finite.Chunks, Delay: r.Finite.Delay, TTFT: 5 * time.Millisecond}, Seed: r.Seed, Keep: 1 << 20, Log: slog.New(slog.DiscardHandler)}
	for _, text := range r.Finite.Shares {
		shares, err := model.AddShares(config.Shares, text)
		if err != nil {
			return err
		}
		config.Shares = shares
	}
	r.model = model.New(config)
	r.registerServer(&fakeservice.Server{})
	r.server.Serve(&http.Server{Handler: r.model, ReadHeaderTimeout: time.Minute}, l)
	return nil
}

// expectFinite returns the expected verdict, from the ledger of the model.
func (r *run) expectFinite() *verdictExpectation {
	e := &verdictExpectation{Outcomes: passes, Counts: counts{}, Clients: map[string]bool{}}
	for _, name := range []string{"missed", "duplicated", "reordered", "corrupted"} {
		e.Counts[name] = exactCount(0)
	}
	for _, state := range ledger.ResponseStates {
		e.Counts["responses "+string(state)] = exactCount(0)
	}
	for record := range r.model.Records("") {
		if strings.HasSuffix(record.ID, "-trial") {
			continue
		}
		fault, _, _ := strings.Cut(record.Fault, "@")
		state, chunk := cmp.Or(faultStates[fault], ledger.ResponseComplete), chunkFaults[fault]
		e.Counts.add("responses "+string(state), exactCount(1))
		if chunk != "" {
			e.Counts.add(chunk, exactCount(1))
		}
		if state != ledger.ResponseComplete || chunk != "" {
			e.Clients[record.ID] = true
		}
		if state != ledger.ResponseComplete && state != ledger.ResponseLingering || chunk != "" {
			e.Outcomes = fails
		}
	}
	return e
}

// faultStates maps faults to the expected states of their responses. After any other fault, a response is complete.
var faultStates = map[string]ledger.ResponseState{
	"truncate": ledger.ResponseTruncated, "cut": ledger.ResponseTruncated, "reset": ledger.ResponseTruncated, "noterminal": ledger.ResponseTruncated,
	"error": ledger.ResponseError, "stall": ledger.ResponseIdle, "empty": ledger.ResponseEmpty, "linger": ledger.ResponseLingering,
	"twice": ledger.ResponseAfterDone, "429": ledger.ResponseRefused, "500": ledger.ResponseRefused,
}

// chunkFaults maps each fault of a chunk to the count that it increases by 1.
var chunkFaults = map[string]string{"drop": "missed", "double": "duplicated", "swap": "reordered", "corrupt": "corrupted"}

func countResponses(counts map[string]int, v *verdict.Responses) {
	if v == nil {
		return
	}
	for state, n := range map[ledger.ResponseState]int64{
		ledger.ResponseComplete: v.Complete, ledger.ResponseTruncated: v.Truncated, ledger.ResponseError: v.ErrorEvent, ledger.ResponseRefused: v.Refused,
		ledger.ResponseEmpty: v.Empty, ledger.ResponseIdle: v.Idle, ledger.ResponseLingering: v.Lingering, ledger.ResponseAfterDone: v.AfterDone,
		ledger.ResponseUnfinished: v.Unfinished, ledger.ResponseAbandoned: v.Abandoned,
	} {
		counts["responses "+string(state)] = int(n)
	}
}
