package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/backend/services"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A harm is done to an answer of a service of requests; false: the request is to be answered all the same.
type harm func(http.ResponseWriter, *http.Request) bool

// harmed is a suite of requests against a service that harms one in `each` of them.
func harmed(name string, does harm, each int) prepare {
	return then(suite(name), func(_ *rand.Rand, sc *scenario) {
		sc.harm, sc.Strike.Count, sc.want.Outcomes = does, each, fails
	})
}

// startHarmed starts the backend's own handler of requests, with a harm to one in `each` of them.
func startHarmed(sc *scenario, l net.Listener) (stop func()) {
	h := services.New("")
	var seen atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counts := services.Owns(r.URL.Path) && (sc.Suite != "upload" || r.Method == http.MethodPost)
		if !counts || seen.Add(1)%int64(sc.Strike.Count) != 0 || !sc.harm(w, r) {
			h.ServeHTTP(w, r)
		}
	})}
	go func() { _ = server.Serve(l) }()
	return func() { _ = server.Close() }
}

func harmWrong(w http.ResponseWriter, _ *http.Request) bool {
	_, _ = io.WriteString(w, `{"result": -17}`)
	return true
}

func harmStatus(status int) harm {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		return true
	}
}

func harmStall(http.ResponseWriter, *http.Request) bool {
	time.Sleep(2100 * time.Millisecond)
	return false
}

func harmReset(w http.ResponseWriter, _ *http.Request) bool {
	fakeservice.Reset(w)
	return true
}

func harmByte(_ http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err == nil && len(body) > 0 {
		body[len(body)/2] ^= 1
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return false
}
