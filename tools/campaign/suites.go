package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/backend/services"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// cleanSuites are suites against a good service: our own, or one of streams that is here.
var cleanSuites = []kind{
	{groupClean, "clean", goodSuite("rampup")}, {groupClean, "clean", goodSuite("burst")}, {groupClean, "clean", goodSuite("upload")},
	{groupClean, "clean", goodSuite("throughput")}, {groupClean, "clean", goodSuite("compare")}, {groupClean, "clean", goodSuite("fanout")},
	{groupClean, "clean", goodSuite("capacity")}, {groupClean, "clean", goodSuite("churn")},
	{groupClean, "clean", streams("capacity", strike{}, verdict.Pass)}, {groupClean, "clean", streams("churn", strike{}, verdict.Pass)},
}

// suiteKinds are suites against a bad one.
var suiteKinds = []kind{
	{groupSuite, "capacity: noops lost", streams("capacity", strike{Action: actLose, Noop: 2, Count: 1}, verdict.Fail)},
	{groupSuite, "capacity: silence", streams("capacity", strike{Action: actLose, Noop: 1}, verdict.Fail)},
	{groupSuite, "capacity: noops doubled", streams("capacity", strike{Action: actDuplicate}, verdict.Fail)},
	{groupSuite, "capacity: noops corrupted", streams("capacity", strike{Action: actCorrupt}, verdict.Fail)},
	{groupSuite, "churn: noops lost", streams("churn", strike{Action: actLose, Noop: 2, Count: 1}, verdict.Fail)},
	{groupSuite, "churn: noops doubled", streams("churn", strike{Action: actDuplicate}, verdict.Fail)},
	{groupSuite, "churn: noops corrupted", streams("churn", strike{Action: actCorrupt}, verdict.Fail)},
	{groupSuite, "fanout: message dropped", func(r *rand.Rand, sc *scenario) {
		goodSuite("fanout")(r, sc)
		sc.Fault = "drop:noop=2,count=2"
		sc.want = &expected{Outcomes: []verdict.Outcome{verdict.Fail}, Any: true}
	}},
	{groupSuite, "rampup: wrong answers", harmed("rampup", harmWrong, 15)},
	{groupSuite, "rampup: 500", harmed("rampup", harm500, 10)},
	{groupSuite, "rampup: 204", harmed("rampup", harm204, 20)},
	{groupSuite, "rampup: stalls", harmed("rampup", harmStall, 50)},
	{groupSuite, "rampup: resets", harmed("rampup", harmReset, 20)},
	{groupSuite, "throughput: wrong answers", harmed("throughput", harmWrong, 15)},
	{groupSuite, "throughput: 500", harmed("throughput", harm500, 10)},
	{groupSuite, "throughput: resets", harmed("throughput", harmReset, 20)},
	{groupSuite, "burst: 500", harmed("burst", harm500, 7)},
	{groupSuite, "burst: resets", harmed("burst", harmReset, 10)},
	{groupSuite, "upload: a byte changed", harmed("upload", harmByte, 3)},
}

func goodSuite(name string) func(*rand.Rand, *scenario) {
	return func(r *rand.Rand, sc *scenario) {
		sc.Suite, sc.Service, sc.NoNginx = name, nil, name != "compare" && r.IntN(2) == 0
		sc.Plan.Seconds = 20
		sc.want = &expected{Outcomes: []verdict.Outcome{verdict.Pass}, Any: true}
		switch name {
		case "capacity":
			sc.Args = []string{"--late-ms", "20000"} // the limit of this machine is not wanted
		case "churn":
			sc.Args = []string{"--seed", itoa(r.IntN(1000))}
		}
	}
}

// streams is a suite of event streams against a service of this process.
func streams(name string, fault strike, outcome verdict.Outcome) func(*rand.Rand, *scenario) {
	return func(r *rand.Rand, sc *scenario) {
		service := sc.Service
		goodSuite(name)(r, sc)
		sc.Service, sc.Strike = service, fault
		sc.Plan.Interval, sc.Plan.Connections = 1, 150
		if fault.Noop == 1 || fault.Noop == 2 {
			sc.Service.IDs, sc.Service.Schedule.Phase = idsNumbers, phaseConnect
		}
		sc.want = &expected{Outcomes: []verdict.Outcome{outcome}, Any: true}
	}
}

// What a service of requests does to each so many-th of them.
const (
	harmWrong = "wrong answer"
	harm500   = "status 500"
	harm204   = "status 204"
	harmStall = "2.1 s late"
	harmReset = "reset"
	harmByte  = "a byte of the upload changed"
)

func harmed(suite, harm string, each int) func(*rand.Rand, *scenario) {
	return func(r *rand.Rand, sc *scenario) {
		goodSuite(suite)(r, sc)
		sc.Harm = harm
		sc.Strike.Count = each
		sc.want = &expected{Outcomes: []verdict.Outcome{verdict.Fail}, Any: true}
	}
}

// startHarmed is the backend's own handler of requests, and does harm to each so many-th.
func startHarmed(harm string, each int, l net.Listener) *http.Server {
	h := services.New("")
	var seen atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counts := services.Owns(r.URL.Path) && (harm != harmByte || r.Method == http.MethodPost)
		if !counts || seen.Add(1)%int64(each) != 0 || !harmAnswer(harm, w, r) {
			h.ServeHTTP(w, r)
		}
	})}
	go func() { _ = server.Serve(l) }()
	return server
}

// harmAnswer does the harm; it reports false where the request is to be answered all the same.
func harmAnswer(harm string, w http.ResponseWriter, r *http.Request) bool {
	switch harm {
	case harmWrong:
		_, _ = io.WriteString(w, `{"result": -17}`)
	case harm500:
		w.WriteHeader(http.StatusInternalServerError)
	case harm204:
		w.WriteHeader(http.StatusNoContent)
	case harmStall:
		time.Sleep(2100 * time.Millisecond)
		return false
	case harmReset:
		if hijacker, ok := w.(http.Hijacker); ok {
			if conn, _, err := hijacker.Hijack(); err == nil {
				if tcp, ok := conn.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0)
				}
				_ = conn.Close()
			}
		}
	case harmByte:
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 {
			body[len(body)/2] ^= 1
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return false
	}
	return true
}

// blamesGenerator says that a verdict blames the generator.
func (j *judged) blamesGenerator() bool {
	return j.Verdict.Verdict == verdict.Invalid && strings.Contains(strings.Join(j.Reasons, "\n"), "the generator")
}
